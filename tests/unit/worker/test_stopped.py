"""Workspaces that are deleted when they have stopped: which ones, and one that is used again stays."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_template, make_workspace

from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.accounts import users
from svc.host.ids import after, now
from svc.limits import DELETE_AFTER_S
from svc.worker.stopped import AGAIN_S, StoppedWatch, due

LONG_AGO = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def far(db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    monkeypatch.setattr(operations, "wake", lambda: None)
    end = FarEnd("worker")
    end.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    yield end
    end.close()


@pytest.fixture
def watch(far: FarEnd) -> StoppedWatch:
    return StoppedWatch(far.helper)


def left(owner: int, name: str = "job", **columns: Any) -> str:
    """A workspace of `svc ws run --rm` whose client has gone; its id."""
    if not database.execute_sql("SELECT 1 FROM templates").fetchone():
        make_template(owner)
    template = database.execute_sql("SELECT id FROM templates").fetchone()[0]
    row = {"delete_when_stopped": 1, "status_since": LONG_AGO, "container_id": CONTAINER} | columns
    return make_workspace(owner, template, name, **row)


def pass_once(watch: StoppedWatch) -> None:
    watch.begin()
    until(lambda: not watch.busy)


def until(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def names() -> list[str]:
    return [name for (name,) in database.execute_sql("SELECT name FROM workspaces ORDER BY name")]


def test_who_is_due(owner: int, far: FarEnd) -> None:
    at = now()
    left(owner, "first"), left(owner, "failed", status="failed", status_since=after(at, -DELETE_AFTER_S - 1))
    left(owner, "young", status_since=after(at, -DELETE_AFTER_S + 60))
    left(owner, "runs", status="running")
    left(owner, "kept", delete_when_stopped=0)
    assert [row.id for row in due(at)] == ["ws-000first", "ws-00failed"]
    with write():
        database.execute_sql("UPDATE users SET disabled = 1")
    assert due(at) == []


def test_its_container_goes_with_it(owner: int, far: FarEnd, watch: StoppedWatch) -> None:
    left(owner)
    left(owner, "kept", delete_when_stopped=0)
    pass_once(watch)
    assert names() == ["kept"]
    assert far.verbs()[-1] == "ctr.remove"
    found = database.execute_sql("SELECT action, outcome, via FROM audit ORDER BY id").fetchall()
    assert found == [("workspace.delete", "begun", "worker"), ("workspace.delete", "ok", "worker")]


def test_one_that_was_started_again_stays(owner: int, far: FarEnd, watch: StoppedWatch) -> None:
    left(owner)
    [row] = due(now())
    with write():
        database.execute_sql("UPDATE workspaces SET status = 'running', status_since = ?", (now(),))
    watch._delete(row)
    assert (names(), far.verbs()) == (["job"], [])


def test_one_that_cannot_be_deleted_is_tried_again_later(
    owner: int, far: FarEnd, watch: StoppedWatch
) -> None:
    left(owner)
    far.answers["ctr.remove"] = "unavailable"
    for _ in range(2):
        pass_once(watch)
    assert far.verbs().count("ctr.remove") == 1
    far.answers["ctr.remove"] = {}
    with write():
        database.execute_sql("UPDATE workspaces SET status = 'stopped', status_since = ?", (LONG_AGO,))
    watch.not_before = {name: at - AGAIN_S for name, at in watch.not_before.items()}
    pass_once(watch)
    assert names() == []


def test_an_agent_that_says_nothing_keeps_no_others_waiting(
    owner: int, far: FarEnd, watch: StoppedWatch
) -> None:
    """Each call to it took a minute, and everybody's were deleted one after the other."""
    left(owner, "job1"), left(owner, "job2")
    left(users.create("bob", uid=2002, provisioning=users.READY).id, "mine")
    silent = threading.Event()

    def remove(call: Any) -> Any:
        return {} if call.user == "bob" else silent.wait(30) and "unavailable"

    far.answers["ctr.remove"] = remove
    watch.begin()
    until(lambda: "mine" not in names())
    watch.begin()
    silent.set()
    until(lambda: not watch.busy)
    assert names() == ["job1", "job2"]
    assert [call.user for call in far.calls if call.verb.name == "ctr.remove"].count("ada") == 1
    pass_once(watch)
    assert far.verbs().count("ctr.remove") == 2
