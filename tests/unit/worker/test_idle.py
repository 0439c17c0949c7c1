"""Looks at workspaces with an idle policy: a real database, a helper that records, a clock of the test's."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.serving import FarEnd, make_template, make_workspace

from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.workspaces import idle
from svc.host.ids import after
from svc.worker.idle import IdleWatch

AT = "2026-01-01T00:00:00.000Z"


class Clock:
    """Seconds since the test began, which only minutes() moves."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds

    def time_of_day(self) -> str:
        return after(AT, self.seconds)


class Lab:
    """One workspace, what its agent says of it, and the looks at it."""

    def __init__(self, owner: int, far: FarEnd, policy: dict[str, Any]) -> None:
        template = make_template(owner, idle=policy)
        self.id = make_workspace(owner, template, status="running", status_since=AT)
        self.far = far
        self.clock = Clock()
        self.watch = IdleWatch(far.helper, self.clock, self.clock.time_of_day)

    def minutes(self, count: int) -> None:
        """Let time pass, with a look each minute."""
        for _ in range(count):
            self.clock.seconds += 60
            self.watch.measure(idle.watched())

    @property
    def row(self) -> tuple[Any, ...]:
        found = database.execute_sql(
            "SELECT status, status_reason, idle_since FROM workspaces WHERE id = ?", (self.id,)
        )
        row: tuple[Any, ...] = found.fetchone()
        return row

    def audited(self) -> list[tuple[Any, ...]]:
        """The rows of what the worker did, in order."""
        found = database.execute_sql("SELECT action, outcome, via FROM audit ORDER BY id")
        rows: list[tuple[Any, ...]] = found.fetchall()
        return rows


@pytest.fixture
def far(db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    monkeypatch.setattr(operations, "wake", lambda: None)
    end = FarEnd("worker")
    end.answers["ctr.stats"] = {"cpu_usec": 1000}
    end.answers["port.list"] = {"ports": []}
    yield end
    end.close()


@pytest.fixture
def lab(owner: int, far: FarEnd) -> Callable[..., Lab]:
    def make(action: str, after_minutes: int = 10) -> Lab:
        return Lab(owner, far, {"action": action, "after_minutes": after_minutes})

    return make


def test_a_quiet_one_is_stopped_after_its_minutes(lab: Callable[..., Lab]) -> None:
    quiet = lab("stop")
    quiet.minutes(11)  # the first look counts, the second is quiet, and nine more minutes
    assert quiet.row == ("running", None, after(AT, 120))
    quiet.minutes(1)
    assert quiet.row[:2] == ("stopped", "idle_policy")
    assert quiet.audited() == [
        ("workspace.idle", "stop", "worker"),
        ("workspace.stop", "begun", "worker"),
        ("workspace.stop", "ok", "worker"),
    ]
    assert quiet.far.verbs()[-1] == "ctr.stop"
    quiet.minutes(2)
    quiet.watch.begin()
    assert quiet.row == ("stopped", "idle_policy", None)
    assert quiet.far.verbs()[-1] == "ctr.stop"


def test_to_notify_says_it_once_and_stops_nothing(lab: Callable[..., Lab]) -> None:
    quiet = lab("notify")
    quiet.minutes(40)
    assert quiet.row == ("running", None, after(AT, 120))
    assert quiet.audited() == [("workspace.idle", "notify", "worker")]
    idle.touch(quiet.id)
    quiet.minutes(20)
    assert len(quiet.audited()) == 2


def test_use_of_the_processor_is_activity(lab: Callable[..., Lab]) -> None:
    busy = lab("stop")
    busy.far.answers["ctr.stats"] = lambda _: {"cpu_usec": int(busy.clock.seconds * 100_000)}  # a tenth
    busy.minutes(30)
    assert busy.row == ("running", None, None)
    assert busy.audited() == []


def test_little_of_it_is_none(lab: Callable[..., Lab]) -> None:
    calm = lab("stop")
    calm.far.answers["ctr.stats"] = lambda _: {"cpu_usec": int(calm.clock.seconds * 10_000)}  # one in 100
    calm.minutes(12)
    assert calm.row[:2] == ("stopped", "idle_policy")


@pytest.mark.parametrize("kind", ["bytes", "connections"])
def test_traffic_of_a_port_is_activity(lab: Callable[..., Lab], kind: str) -> None:
    served = lab("stop")
    with write():
        database.execute_sql(
            "INSERT INTO ports (workspace_id, name, container_port, host_port, created_at)"
            " VALUES (?, 'web', 80, 20000, ?)",
            (served.id, AT),
        )
    counts = {"host_port": 20000, "container_port": 80, "connections": 0, "bytes": 5}
    served.far.answers["port.list"] = lambda _: {"ports": [counts | {kind: int(served.clock.seconds)}]}
    served.minutes(30)
    assert served.row == ("running", None, None)
    served.far.answers["port.list"] = {"ports": [counts]}
    served.minutes(12)
    assert served.row[:2] == ("stopped", "idle_policy")


@pytest.mark.parametrize(
    "answer", ["unavailable", "failed", "not_running", {}, {"cpu_usec": "no"}, {"cpu_usec": -(2**80)}, None]
)
def test_what_cannot_be_measured_counts_as_activity(lab: Callable[..., Lab], answer: Any) -> None:
    mute = lab("stop")
    mute.minutes(5)
    assert mute.row[2] is not None
    mute.far.answers["ctr.stats"] = answer
    mute.minutes(1)
    assert mute.row == ("running", None, None)
    mute.minutes(15)
    assert mute.row == ("running", None, None)


def test_after_a_restart_of_the_worker_it_begins_anew(lab: Callable[..., Lab]) -> None:
    quiet = lab("stop")
    quiet.minutes(9)
    quiet.watch = IdleWatch(quiet.far.helper, quiet.clock, quiet.clock.time_of_day)
    quiet.minutes(11)
    assert quiet.row[0] == "running"
    quiet.minutes(2)
    assert quiet.row[:2] == ("stopped", "idle_policy")


def test_a_touch_in_the_last_moment_saves_it(lab: Callable[..., Lab]) -> None:
    quiet = lab("stop")
    quiet.minutes(11)

    def used(_: Any) -> dict[str, int]:
        idle.touch(quiet.id)  # an exec begins while it is measured
        return {"cpu_usec": 1000}

    quiet.far.answers["ctr.stats"] = used
    quiet.minutes(1)
    assert quiet.row == ("running", None, None)


def test_its_owners_word_holds(lab: Callable[..., Lab]) -> None:
    quiet = lab("stop")
    with write():
        database.execute_sql("UPDATE workspaces SET keep_until = ?", (after(AT, 3600),))
    quiet.minutes(59)
    assert quiet.row[0] == "running"
    quiet.minutes(1)
    assert quiet.row[:2] == ("stopped", "idle_policy")


def test_a_stop_that_fails_is_tried_again_and_nothing_is_stuck(lab: Callable[..., Lab]) -> None:
    quiet = lab("stop")
    quiet.far.answers["ctr.stop"] = "failed"
    quiet.far.answers["ctr.inspect"] = {"exists": True, "status": "running"}
    quiet.minutes(12)
    assert quiet.row[0] == "running"
    quiet.far.answers["ctr.stop"] = {"exit_code": 0, "oom_killed": False}
    quiet.minutes(12)
    assert quiet.row[:2] == ("stopped", "idle_policy")


def test_none_with_a_policy_costs_no_call(db: str, owner: int, far: FarEnd) -> None:
    make_workspace(owner, make_template(owner), status="running")
    IdleWatch(far.helper).begin()
    assert far.calls == []


def test_an_owner_who_is_still_being_measured_is_left_out(lab: Callable[..., Lab], owner: int) -> None:
    quiet = lab("stop")
    quiet.watch.measuring.add(owner)
    quiet.watch.begin()
    assert quiet.far.calls == []
    quiet.watch.measuring.clear()
    quiet.watch.begin()
    for _ in range(500):
        if quiet.watch.before and not quiet.watch.measuring:
            break
        time.sleep(0.01)
    assert quiet.far.verbs() == ["ctr.stats"]
    assert not quiet.watch.measuring


def test_a_look_that_lasts_leaves_the_rest(lab: Callable[..., Lab], owner: int, far: FarEnd) -> None:
    """Who answers late keeps nobody else waiting; of the rest nothing is known, so they are not quiet."""
    one = lab("stop")
    for number in range(3):
        make_workspace(
            owner, database.execute_sql("SELECT id FROM templates").fetchone()[0], f"more-{number}",
            id=f"ws-{number:08}", status="running", status_since=AT, idle_since=AT,
        )  # fmt: skip

    def late(_call: Any) -> dict[str, Any]:
        one.clock.seconds += 40
        return {"cpu_usec": 1000}

    far.answers["ctr.stats"] = late
    one.minutes(1)
    assert far.verbs() == ["ctr.stats"] * 2
    since = database.execute_sql("SELECT count(*) FROM workspaces WHERE idle_since IS NOT NULL").fetchone()
    assert since == (0,)


def test_a_run_that_began_in_the_last_moment_is_another_one(
    lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = lab("stop")
    due: list[Any] = []

    def restarted(row: Any) -> None:
        due.append(row)
        with write():
            database.execute_sql("UPDATE workspaces SET status_since = ?", (after(AT, one.clock.seconds),))

    monkeypatch.setattr(idle, "notify", restarted)
    while not due:
        one.minutes(1)
    assert one.row[0] == "running"
    assert "ctr.stop" not in one.far.verbs()
