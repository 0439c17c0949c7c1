"""Restarts: one claim from the stop to the start, leases that stay, and what an interruption leaves."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from unit.domain.gpu_rows import Gpus, uuid
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import errors
from svc.db.connect import close_database, database, write
from svc.domain.principal import Caller
from svc.domain.workspaces import leases, reconcile_rules, transitions, workspaces
from svc.domain.workspaces.reconcile_rules import Seen
from svc.host.ids import now

STARTED = {"container_id": CONTAINER, "pid": 5, "started_at": None, "devices_missing": []}
IDLE = {"exists": True, "status": "stopped"}
BUSY = {"exists": True, "status": "running"}
STOPPED = {"exit_code": 143, "oom_killed": False}


@pytest.fixture
def lab(ada: Caller, far: FarEnd, gpus: Gpus, template: str) -> str:
    """A running workspace of ada's with two GPUs; its id."""
    far.answers |= {"ctr.start": STARTED, "ctr.stop": STOPPED}
    made = make_workspace(ada.user_id, template, gpu_count=2, container_id=CONTAINER)
    workspaces.start(ada, "lab")
    far.calls.clear()
    return made


def test_stop_and_start_are_one(ada: Caller, far: FarEnd, lab: str) -> None:
    """ "Leases kept": at no moment are its GPUs free."""
    held: list[Any] = []

    def noted(reply: dict[str, Any]) -> Any:
        def answer(_call: Any) -> dict[str, Any]:
            held.append((workspaces.get(ada, "lab")["status"], leases.of(lab)))
            close_database()
            return reply

        return answer

    far.answers |= {"ctr.stop": noted(STOPPED), "ctr.start": noted(STARTED)}
    before = workspaces.get(ada, "lab")
    record = workspaces.restart(ada, "lab")
    assert held == [("stopping", [uuid(0), uuid(1)]), ("starting", [uuid(0), uuid(1)])]
    assert far.verbs() == ["ctr.stop", "ctr.start"]
    assert far.calls[1].args["devices"] == ["nvidia.com/gpu=GPU-0", "nvidia.com/gpu=GPU-1"]
    assert (record["status"], record["status_reason"], record["gpus"]) == ("running", None, before["gpus"])
    assert record["started_at"] > before["started_at"]
    rows = database.execute_sql("SELECT action, outcome FROM audit ORDER BY id DESC LIMIT 2").fetchall()
    assert rows == [("workspace.restart", "ok"), ("workspace.restart", "begun")]


def test_its_own_gpus_although_others_come_first(ada: Caller, far: FarEnd, gpus: Gpus, lab: str) -> None:
    with write():
        database.execute_sql("UPDATE gpu_leases SET gpu = 'GPU-3' WHERE gpu = 'GPU-0'")
    assert [gpu["uuid"] for gpu in workspaces.restart(ada, "lab")["gpus"]] == [uuid(1), uuid(3)]


def test_what_does_not_run_is_started(ada: Caller, far: FarEnd, lab: str) -> None:
    workspaces.stop(ada, "lab")
    far.answers["ctr.inspect"] = IDLE
    far.calls.clear()
    assert workspaces.restart(ada, "lab")["status"] == "running"
    assert "ctr.stop" not in far.verbs()


def test_a_refused_one_changes_nothing(ada: Caller, far: FarEnd, lab: str) -> None:
    before = workspaces.get(ada, "lab")
    with write():
        database.execute_sql("INSERT OR REPLACE INTO quotas (name, max_gpus) VALUES ('default', 1)")
    with pytest.raises(errors.QuotaExceeded):
        workspaces.restart(ada, "lab")
    assert (workspaces.get(ada, "lab"), far.verbs()) == (before, [])


@pytest.mark.parametrize(
    ("answers", "status", "reason", "held"),
    [
        ({"ctr.stop": "failed", "ctr.inspect": BUSY}, "running", "engine_error", 2),
        ({"ctr.stop": "unavailable", "ctr.inspect": "unavailable"}, "failed", "engine_error", 2),
        ({"ctr.start": "failed", "ctr.inspect": IDLE}, "failed", "engine_error", 0),
        ({"ctr.start": "image_missing"}, "stopped", "restart", 0),
        ({"ctr.start": None, "ctr.inspect": "unavailable"}, "failed", "engine_error", 2),
    ],
)  # fmt: skip
def test_failures(
    ada: Caller, far: FarEnd, lab: str, answers: dict[str, Any], status: str, reason: str, held: int
) -> None:
    far.answers |= answers
    with pytest.raises(errors.SvcError):
        workspaces.restart(ada, "lab")
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"], len(leases.of(lab))) == (status, reason, held)


def test_a_gpu_that_is_lost_between(ada: Caller, far: FarEnd, gpus: Gpus, lab: str) -> None:
    def stopped(_call: Any) -> dict[str, Any]:
        gpus.fakes = gpus.fakes[1:2]
        gpus.write()
        return STOPPED

    far.answers["ctr.stop"] = stopped
    with pytest.raises(errors.GpuUnavailable):
        workspaces.restart(ada, "lab")
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"], record["exit_code"]) == (
        "stopped",
        "gpu_unavailable",
        143,
    )
    assert not leases.any_held()


def test_fifty_have_one_winner(ada: Caller, far: FarEnd, lab: str) -> None:
    outcomes: list[Any] = []
    gate = threading.Barrier(50)

    def one() -> None:
        gate.wait()
        try:
            outcomes.append(workspaces.restart(ada, "lab")["status"])
        except errors.SvcError as error:
            outcomes.append(type(error))
        finally:
            close_database()

    threads = [threading.Thread(target=one) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    refusals = {errors.OperationInProgress, errors.TooManyRequests}
    won = sum(outcome not in refusals for outcome in outcomes)
    assert won >= 1
    # A record is read after its restart, when the next one may have begun already.
    assert set(outcomes) <= {"running", "stopping", "starting"} | refusals
    assert far.verbs() == ["ctr.stop", "ctr.start"] * won  # never one within another
    assert (workspaces.get(ada, "lab")["status"], leases.of(lab)) == ("running", [uuid(0), uuid(1)])


def test_the_reconciler_leaves_it_alone_until_nobody_works_on_it(ada: Caller, lab: str) -> None:
    row = reconcile_rules.rows(ada.user_id)[0]._replace(status="stopping", status_reason="restart", age_s=20)
    seen = Seen(running=False, exit_code=143, oom_killed=False)
    assert reconcile_rules.judge(row, seen, rebooted=False) is None
    for over in (row._replace(orphan=True), row._replace(age_s=1000)):
        verdict = reconcile_rules.judge(over, seen, rebooted=False)
        assert verdict == ("stopped", "restart", 143)


def test_killed_in_the_middle(ada: Caller, far: FarEnd, lab: str) -> None:
    """Nobody holds its number any more: the worker stops what may run, and its GPUs are free."""
    for status in ("stopping", "starting"):
        with write():
            database.execute_sql(
                "UPDATE workspaces SET status = ?, status_reason = 'restart', status_since = ?, work = 7",
                (status, now()),
            )
        [row] = reconcile_rules.unresolved()
        assert row.orphan
        verdict = reconcile_rules.judge(row, Seen(False, 143, False), rebooted=False)
        assert verdict is not None
        assert transitions.reconcile(ada, row, verdict, has_container=True)
        record = workspaces.get(ada, "lab")
        assert (record["status"], leases.any_held()) == ("stopped", False)
        assert workspaces.restart(ada, "lab")["status"] == "running"
