"""After a reboot: whom the worker starts again, once, and what the row of a refused one says."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import IMAGE, MISSING, FarEnd, make_template, make_workspace

from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.accounts import users
from svc.domain.licence import trial
from svc.worker.boots import AT_ONCE, Boots, due
from svc.worker.reconciler import Reconciler

SINCE = "2026-01-01T00:01:00.000Z"
BEFORE = "2025-12-31T00:00:00.000Z"


@pytest.fixture
def far(db: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FarEnd]:
    monkeypatch.setattr(operations, "wake", lambda: None)
    end = FarEnd("worker")
    yield end
    end.close()


def rebooted(owner: int, name: str = "lab", **columns: Any) -> str:
    """A workspace that the reboot stopped and that wants to run again; its id."""
    if not database.execute_sql("SELECT 1 FROM templates").fetchone():
        make_template(owner)
    template = database.execute_sql("SELECT id FROM templates").fetchone()[0]
    row = {
        "status": "stopped", "status_reason": "host_reboot", "status_since": SINCE, "updated_at": SINCE,
        "restart_on_boot": 1, "container_id": "c" * 64, "started_at": BEFORE,
    } | columns  # fmt: skip
    return make_workspace(owner, template, name, **row)


def states() -> dict[str, tuple[str, str | None]]:
    found = database.execute_sql("SELECT name, status, status_reason FROM workspaces")
    return {name: (status, reason) for name, status, reason in found.fetchall()}


def start_all(far: FarEnd) -> Boots:
    """One pass, to its end."""
    boots = Boots(far.helper, retry_s=0.01)
    boots.begin()
    for _ in range(1000):
        if not boots.threads:
            return boots
        time.sleep(0.01)
    raise AssertionError(f"{boots.threads} threads go on")


def test_who_is_due(owner: int, far: FarEnd) -> None:
    requested = rebooted(owner)
    rebooted(owner, "unasked", restart_on_boot=0)
    rebooted(owner, "edited", updated_at="2026-01-01T00:02:00.000Z")
    rebooted(owner, "stopped", status_reason="user_requested")
    rebooted(owner, "killed", status_reason="oom_killed")
    rebooted(owner, "runs", status="running", status_reason=None)
    assert due() == [(requested, owner)]


def test_one_more_reboot_takes_no_start_back(owner: int, far: FarEnd) -> None:
    """Queued behind others, or with a worker that was not there: it was to run before, and still is."""
    rebooted(owner, status_since=BEFORE, updated_at=BEFORE)
    start_all(far)
    assert states() == {"lab": ("running", None)}


@pytest.mark.parametrize(
    ("status", "reason", "restart", "after"),
    [
        ("starting", None, 1, ("running", None)),
        ("starting", None, 0, ("stopped", "host_reboot")),
        ("stopping", "restart", 1, ("running", None)),
        ("stopping", "user_requested", 1, ("stopped", "user_requested")),
    ],
)
def test_a_start_that_a_reboot_cut_is_made_again(
    owner: int, far: FarEnd, status: str, reason: str | None, restart: int, after: tuple[str, str | None]
) -> None:
    rebooted(
        owner, status=status, status_reason=reason, status_since=BEFORE, updated_at=BEFORE,
        restart_on_boot=restart,
    )  # fmt: skip
    far.answers["ctr.list"] = {"containers": []}
    Reconciler(far.helper).inspect_all()
    start_all(far)
    assert states() == {"lab": after}


def test_whose_engine_cannot_be_reached_is_tried_by_the_next_worker(owner: int, far: FarEnd) -> None:
    far.answers |= {"ctr.start": "unavailable", "ctr.inspect": {"exists": True, "status": "exited"}}
    rebooted(owner)
    boots = start_all(far)
    assert states() == {"lab": ("stopped", "host_reboot")}
    asked = len(far.calls)
    boots.begin()
    assert (boots.threads, len(far.calls)) == (0, asked), "once in one worker"
    far.answers["ctr.start"] = {"container_id": "c" * 64, "pid": 5, "started_at": None}
    start_all(far)
    assert states() == {"lab": ("running", None)}


def test_a_lapsed_licence_stops_starts_after_a_reboot(owner: int, far: FarEnd, tmp_path: Path) -> None:
    """A start is a start, whoever asks for it; the row says why, and an owner can start it later."""
    rebooted(owner)
    configured(state_dir=str(tmp_path))
    trial.write_file(str(tmp_path), "2020-01-01T00:00:00.000Z")
    start_all(far)
    assert states() == {"lab": ("stopped", "license_required")}
    assert far.verbs() == []


def test_each_is_started_as_its_owner_and_once(owner: int, far: FarEnd) -> None:
    for number in range(5):
        rebooted(owner, f"lab{number}")
    rebooted(owner, "off", restart_on_boot=0)
    boots = start_all(far)
    started = [call for call in far.calls if call.verb.name == "ctr.start"]
    assert sorted(call.args["id"] for call in started) == [f"ws-0000lab{number}" for number in range(5)]
    assert {call.user for call in started} == {"ada"}
    assert states() == {f"lab{n}": ("running", None) for n in range(5)} | {"off": ("stopped", "host_reboot")}
    found = database.execute_sql("SELECT DISTINCT action, via, outcome FROM audit ORDER BY outcome")
    assert found.fetchall() == [("workspace.start", "worker", "begun"), ("workspace.start", "worker", "ok")]
    boots.begin()
    assert due() == []
    assert len([call for call in far.calls if call.verb.name == "ctr.start"]) == 5


def test_few_are_started_at_once(owner: int, far: FarEnd) -> None:
    under_way, most = [0], [0]

    def start(_: Any) -> dict[str, Any]:
        under_way[0] += 1
        most[0] = max(most[0], under_way[0])
        time.sleep(0.02)
        under_way[0] -= 1
        return {"container_id": "c" * 64, "pid": 5, "started_at": None}

    far.answers["ctr.start"] = start
    for number in range(8):
        rebooted(owner, f"lab{number}")
    start_all(far)
    assert 1 <= most[0] <= AT_ONCE
    assert set(states().values()) == {("running", None)}


def test_nobodys_slow_starts_hold_up_the_others(owner: int, far: FarEnd) -> None:
    other = users.create("bob", uid=2002, provisioning=users.READY).id
    for number in range(6):
        rebooted(owner, f"slow{number}", started_at="2025-01-01T00:00:00.000Z")
    for number in range(2):
        rebooted(other, f"quick{number}")
    boots = Boots(far.helper)
    boots.waiting = due()
    assert [boots.waiting[0][1], boots.waiting[-1][1]] == [owner, other]
    order = [taken[1] for _ in range(8) if (taken := boots._take())]
    assert order[:4] == [owner, other, owner, other]
    assert boots._take() is None


def test_a_missing_image_is_told_in_the_row_and_not_tried_again(owner: int, far: FarEnd) -> None:
    far.answers["image.inspect"] = MISSING
    rebooted(owner, container_id=None)
    start_all(far)
    assert states() == {"lab": ("stopped", "image_missing")}
    assert due() == []
    assert IMAGE not in [call.args.get("image") for call in far.calls if call.verb.name == "ctr.create"]


def test_a_gpu_that_is_not_to_be_had_is_told_in_the_row(owner: int, far: FarEnd) -> None:
    rebooted(owner, gpu_count=1)
    rebooted(owner, "plain")
    start_all(far)
    assert states() == {"lab": ("stopped", "gpu_unavailable"), "plain": ("running", None)}


def test_a_disabled_account_starts_nothing(owner: int, far: FarEnd) -> None:
    rebooted(owner)
    users.update(users.get("ada"), disabled=True)
    start_all(far)
    assert states() == {"lab": ("stopped", "account_disabled")}
    assert far.calls == []


def test_an_engine_that_comes_late_is_waited_for(owner: int, far: FarEnd) -> None:
    asked: list[int] = []

    def start(_: Any) -> Any:
        asked.append(1)
        late = len(asked) < 3
        return "unavailable" if late else {"container_id": "c" * 64, "pid": 5, "started_at": None}

    far.answers["ctr.start"] = start
    far.answers["ctr.inspect"] = lambda _: {"exists": True, "status": "exited"} if len(asked) < 3 else {}
    rebooted(owner)
    start_all(far)
    assert states() == {"lab": ("running", None)}
    assert len(asked) == 3


def test_one_that_fails_keeps_no_other_from_it(owner: int, far: FarEnd) -> None:
    far.answers["ctr.inspect"] = {"exists": True, "status": "exited"}
    far.answers["ctr.start"] = lambda call: (
        "failed"
        if call.args["id"].endswith("bad")
        else {"container_id": "c" * 64, "pid": 5, "started_at": None}
    )
    rebooted(owner, "bad")
    rebooted(owner, "good")
    start_all(far)
    assert states() == {"bad": ("failed", "engine_error"), "good": ("running", None)}


def test_one_that_is_deleted_meanwhile_is_none(owner: int, far: FarEnd) -> None:
    workspace = rebooted(owner)
    boots = Boots(far.helper)
    with write():
        database.execute_sql("DELETE FROM workspaces")
    boots.start(workspace, owner)
    assert states() == {}
