"""Starts with GPUs and limits: what is claimed, what a failure leaves, what the agent's word does."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from unit.configuring import configured
from unit.domain.gpu_rows import Gpus, uuid
from unit.serving import CONTAINER, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import close_database, database, write
from svc.domain.principal import Caller
from svc.domain.workspaces import leases, states, transitions, workspaces

STARTED = {"container_id": CONTAINER, "pid": 5, "started_at": None, "devices_missing": []}
WORK = 7  # the number of a call
NOT_RUNNING = {"exists": True, "status": "stopped"}


@pytest.fixture
def lab(ada: Caller, far: FarEnd, gpus: Gpus, template: str) -> str:
    """A stopped workspace of ada's that wants two GPUs; its id."""
    far.answers["ctr.start"] = STARTED
    return make_workspace(ada.user_id, template, gpu_count=2, container_id=CONTAINER)


def test_a_start_takes_and_a_stop_releases(ada: Caller, far: FarEnd, lab: str) -> None:
    record = workspaces.start(ada, "lab")
    assert record["gpus"] == [{"uuid": uuid(0), "mode": "exclusive"}, {"uuid": uuid(1), "mode": "exclusive"}]
    assert record["health"] == "ok"
    assert far.calls[-1].args["devices"] == ["nvidia.com/gpu=GPU-0", "nvidia.com/gpu=GPU-1"]
    assert workspaces.stop(ada, "lab")["gpus"] == []
    assert not leases.any_held()


def test_a_refused_start_changes_nothing(ada: Caller, far: FarEnd, gpus: Gpus, lab: str) -> None:
    before = workspaces.get(ada, "lab")
    gpus.fakes = gpus.fakes[:1]
    gpus.write()
    with pytest.raises(errors.GpuUnavailable):
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab") == before
    with write():
        database.execute_sql("UPDATE quotas SET max_gpus = 1")
    gpus.fakes *= 2
    with pytest.raises(errors.QuotaExceeded):
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab") == before
    assert far.verbs() == []


@pytest.mark.parametrize(
    ("answer", "seen", "error", "status", "held"),
    [
        ("failed", NOT_RUNNING, errors.EngineFailed, "failed", 0),
        ("timeout", NOT_RUNNING, errors.EngineTimeout, "failed", 0),
        (None, NOT_RUNNING, errors.EngineUnavailable, "stopped", 0),
        (None, {"exists": True, "status": "running"}, errors.EngineUnavailable, "running", 2),
        (None, "unavailable", errors.EngineUnavailable, "failed", 2),
        ("account", None, errors.AccountDisabled, "stopped", 0),
        ("image_missing", None, errors.ImageMissing, "stopped", 0),
        ({**STARTED, "devices_missing": "none"}, NOT_RUNNING, errors.EngineFailed, "failed", 0),
        ({"pid": 5}, NOT_RUNNING, errors.EngineFailed, "failed", 0),
    ],
)
def test_a_failed_start_leaves_no_lease_unless_nobody_knows(
    ada: Caller, far: FarEnd, lab: str, answer: Any, seen: Any, error: type[Exception], status: str, held: int
) -> None:
    far.answers |= {"ctr.start": answer, "ctr.inspect": seen}
    with pytest.raises(error) as caught:
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == status
    assert caught.value.message.endswith("; lab runs") == (status == "running"), "it does not deny the start"
    assert len(leases.of(lab)) == held


@pytest.mark.parametrize("seen", [{"exists": True, "status": "running"}, "unavailable"])
def test_what_a_lost_start_left_running_began_with_it(ada: Caller, far: FarEnd, lab: str, seen: Any) -> None:
    before = "2026-01-01T00:00:00.000Z"
    database.execute_sql("UPDATE workspaces SET started_at = ?", (before,))
    far.answers |= {"ctr.start": None, "ctr.inspect": seen}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab")["started_at"] > before


def test_what_may_still_be_starting_is_stopped_before_its_gpus_are_free(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    """Podman goes on with a start whose asker has died; a stop waits for it."""
    held: list[int] = []

    def stopped(_call: Any) -> dict[str, Any]:
        held.append(len(leases.of(lab)))
        close_database()
        return {"exit_code": 0, "oom_killed": False}

    far.answers |= {"ctr.start": None, "ctr.inspect": NOT_RUNNING, "ctr.stop": stopped}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    assert held == [2]
    assert not leases.any_held()


def test_a_stop_that_fails_keeps_them(ada: Caller, far: FarEnd, lab: str, wakes: list[int]) -> None:
    far.answers |= {"ctr.start": None, "ctr.inspect": NOT_RUNNING, "ctr.stop": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == "failed"
    assert len(leases.of(lab)) == 2
    assert wakes


def test_a_container_that_did_not_get_its_gpus(ada: Caller, far: FarEnd, lab: str) -> None:
    """ "Verified inside the container after start"; what the agent says of others is not believed."""
    far.answers["ctr.start"] = STARTED | {"devices_missing": ["nvidia.com/gpu=GPU-1", "x", 7, None]}
    with pytest.raises(errors.GpuUnavailable) as caught:
        workspaces.start(ada, "lab")
    assert caught.value.message == "the container of lab did not get nvidia.com/gpu=GPU-1"
    assert far.verbs() == ["ctr.start", "ctr.stop"]
    assert workspaces.get(ada, "lab")["status"] == "stopped"
    assert not leases.any_held()


def test_one_that_may_still_run_is_stopped_before_it_takes_gpus_anew(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    far.answers |= {"ctr.start": None, "ctr.inspect": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    far.calls.clear()
    far.answers |= {"ctr.stop": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    assert far.verbs() == ["ctr.stop", "ctr.inspect"]
    assert (workspaces.get(ada, "lab")["status"], len(leases.of(lab))) == ("failed", 2)
    far.answers |= {"ctr.stop": {"exit_code": 0}, "ctr.start": STARTED}
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert len(leases.of(lab)) == 2


def test_a_start_that_was_settled_meanwhile_ends_what_it_started(ada: Caller, far: FarEnd, lab: str) -> None:
    def resolved(_call: Any) -> dict[str, Any]:
        present = states.of_id(lab)
        assert present is not None
        states.move(present, "stopped", "start_timeout")
        close_database()
        return STARTED

    far.answers["ctr.start"] = resolved
    with pytest.raises(errors.OperationInProgress):
        workspaces.start(ada, "lab")
    assert far.verbs() == ["ctr.start", "ctr.stop"]
    assert workspaces.get(ada, "lab")["status_reason"] == "start_timeout"


def test_a_start_that_the_worker_saw_first_is_one(
    ada: Caller, far: FarEnd, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("svc.domain.workspaces.missing_limits.SYSTEMD", "/nowhere")

    def seen(_call: Any) -> dict[str, Any]:
        present = states.of_id(lab)
        assert present is not None
        states.move(present, "running")
        close_database()
        return STARTED | {"limits_missing": ["cpu_limit"]}

    far.answers["ctr.start"] = seen
    record = workspaces.start(ada, "lab")
    assert (record["status"], record["limits_missing"]) == ("running", ["cpu_limit"])
    assert len(record["gpus"]) == 2


def test_one_whose_end_the_worker_sees_meanwhile_is_started(ada: Caller, far: FarEnd, lab: str) -> None:
    """After the end of everything, as when the host goes down: the start was refused as a second request."""
    far.answers["ctr.start"] = STARTED
    workspaces.start(ada, "lab")

    def seen(_call: Any) -> dict[str, Any]:
        present = states.of_id(lab)
        assert present is not None
        states.move(present, "stopped", "container_missing")
        close_database()
        return {"exists": True, "status": "stopped", "exit_code": 137}

    far.answers["ctr.inspect"] = seen
    leases.release(lab)
    assert workspaces.start(ada, "lab")["status"] == "running"
    assert far.verbs() == ["ctr.start", "ctr.inspect", "ctr.start"]


def test_an_edit_between_look_and_claim(ada: Caller, far: FarEnd, lab: str, template: str) -> None:
    """GPUs that were not asked about before the lock are not asked about under it."""
    before = states.find(ada, "lab")
    with pytest.raises(errors.OperationInProgress):
        transitions.claim_start(before._replace(gpu_count=0), WORK)
    assert workspaces.get(ada, "lab")["status"] == "stopped"


def test_room_for_two(ada: Caller, far: FarEnd, gpus: Gpus, template: str) -> None:
    """ "20 starts at once against room for 2 let exactly 2 through"."""
    far.answers["ctr.start"] = STARTED
    for number in range(20):
        make_workspace(ada.user_id, template, f"lab-{number}", id=f"ws-000000{number:02}", gpu_count=2,
                       container_id=CONTAINER)  # fmt: skip
    results: list[Any] = []
    gate = threading.Barrier(20)

    def start(name: str) -> None:
        gate.wait()
        try:
            results.append(workspaces.start(ada, name)["gpus"])
        except errors.SvcError as error:
            results.append(error)
        finally:
            close_database()

    threads = [threading.Thread(target=start, args=(f"lab-{number}",)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    winners = [result for result in results if isinstance(result, list)]
    assert sorted(gpu["uuid"] for won in winners for gpu in won) == [uuid(number) for number in range(4)]
    losers = [result for result in results if not isinstance(result, list)]
    assert len(losers) == 18
    assert all(isinstance(loser, errors.GpuUnavailable) or loser.retryable for loser in losers)


# --- limits that the host cannot apply ----------------------------------------------------


@pytest.fixture
def required(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(missing_limits="refuse")


@pytest.mark.usefixtures("required")
def test_a_create_whose_limits_are_missing_leaves_nothing(ada: Caller, far: FarEnd, template: str) -> None:
    far.answers["ctr.create"] = {"container_id": CONTAINER, "limits_missing": ["memory_bytes"]}
    with pytest.raises(errors.LimitsNotEnforceable) as caught:
        workspaces.create(ada, {"name": "lab", "template": "base", "resources": {"memory_bytes": 2**30}})
    assert caught.value.details == {"missing": ["memory_bytes"]}
    assert "ctr.remove" in far.verbs()
    assert '"total":0' in workspaces.page_of(ada, workspaces.Page())


@pytest.mark.usefixtures("required")
def test_a_start_whose_limits_are_missing_is_ended(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers["ctr.start"] = STARTED | {"limits_missing": ["pids_limit"]}
    with pytest.raises(errors.LimitsNotEnforceable) as caught:
        workspaces.start(ada, "lab")
    assert "SVC_MISSING_LIMITS" in caught.value.hint
    assert caught.value.hint.startswith("svc ws edit lab --file -")
    assert far.verbs() == ["ctr.start", "ctr.stop"]
    assert workspaces.get(ada, "lab")["status"] == "stopped"
    assert not leases.any_held()


def test_where_it_is_allowed_the_record_says_so(
    ada: Caller, far: FarEnd, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured(missing_limits="allow")
    far.answers["ctr.create"] = {"container_id": CONTAINER, "limits_missing": ["memory_bytes", "cpu_limit"]}
    record = workspaces.create(ada, {"name": "lab", "template": "base"})
    assert record["limits_missing"] == ["cpu_limit", "memory_bytes"]
    assert workspaces.start(ada, "lab")["limits_missing"] == []
    assert json.loads(workspaces.page_of(ada, workspaces.Page()))["items"][0]["limits_missing"] == []


def test_a_template_with_gpus_by_default(ada: Caller, far: FarEnd, gpus: Gpus) -> None:
    far.answers["ctr.start"] = STARTED
    make_template(ada.user_id, "cuda", defaults={"gpu_count": 1})
    workspaces.create(ada, {"name": "lab", "template": "cuda"})
    assert len(workspaces.start(ada, "lab")["gpus"]) == 1


@pytest.mark.parametrize(
    ("seen", "status"), [(NOT_RUNNING, "stopped"), ({"exists": True, "status": "running"}, "running")]
)
def test_a_stop_whose_answer_is_lost_is_not_denied(
    ada: Caller, far: FarEnd, lab: str, seen: Any, status: str
) -> None:
    far.answers["ctr.start"] = STARTED
    workspaces.start(ada, "lab")
    far.answers |= {"ctr.stop": None, "ctr.inspect": seen}
    with pytest.raises(errors.EngineUnavailable) as caught:
        workspaces.stop(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == status
    assert caught.value.message.endswith("; lab is stopped") == (status == "stopped")


def test_a_stop_that_is_lost_behind_a_start_that_may_be_under_way(ada: Caller, far: FarEnd, lab: str) -> None:
    """Nothing runs yet, for Podman is still at it: its GPUs are not free before a stop has been answered."""
    far.answers |= {"ctr.start": None, "ctr.inspect": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    far.answers |= {"ctr.stop": None, "ctr.inspect": NOT_RUNNING}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.stop(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == "failed"
    assert len(leases.of(lab)) == 2


def test_an_account_disabled_between_start_and_stop_keeps_its_gpus(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    """It runs, and should not: whoever may not stop it does not free its GPUs either."""
    far.answers |= {
        "ctr.start": STARTED | {"devices_missing": ["nvidia.com/gpu=GPU-1"]},
        "ctr.stop": "account",
    }
    far.answers["ctr.inspect"] = "account"
    with pytest.raises(errors.EngineFailed):
        workspaces.start(ada, "lab")
    assert workspaces.get(ada, "lab")["status"] == "failed"
    assert len(leases.of(lab)) == 2


def test_what_may_run_unseen_is_not_edited(ada: Caller, far: FarEnd, lab: str) -> None:
    """Else a quota would count what the row says, and not what runs."""
    far.answers |= {"ctr.start": None, "ctr.inspect": "unavailable"}
    with pytest.raises(errors.EngineUnavailable):
        workspaces.start(ada, "lab")
    with pytest.raises(errors.WorkspaceNotStopped):
        workspaces.edit(ada, "lab", {"resources": {"gpu_count": 0}})
    assert workspaces.rename(ada, "lab", "lab-2")["resources"]["gpu_count"] == 2


def test_a_start_that_was_settled_while_its_container_was_made_starts_nothing(
    ada: Caller, far: FarEnd, lab: str
) -> None:
    """Its GPUs went with that: they may be another's by now."""

    def resolved(_call: Any) -> str:
        present = states.of_id(lab)
        assert present is not None
        states.move(present, "stopped", "start_timeout")
        close_database()
        return "not_found"

    far.answers["ctr.start"] = resolved
    with pytest.raises(errors.OperationInProgress):
        workspaces.start(ada, "lab")
    assert far.verbs().count("ctr.start") == 1
    assert "ctr.stop" not in far.verbs()
    assert workspaces.get(ada, "lab")["status_reason"] == "start_timeout"


def test_without_gpus_too_a_start_that_was_settled_meanwhile_is_ended(
    ada: Caller, far: FarEnd, template: str
) -> None:
    """Nobody looks at what says that it is stopped, and no quota counts it."""
    workspace_id = make_workspace(ada.user_id, template, container_id=CONTAINER)

    def resolved(_call: Any) -> dict[str, Any]:
        present = states.of_id(workspace_id)
        assert present is not None
        states.move(present, "stopped", "start_timeout")
        close_database()
        return STARTED

    far.answers["ctr.start"] = resolved
    with pytest.raises(errors.OperationInProgress):
        workspaces.start(ada, workspace_id)
    assert far.verbs() == ["ctr.start", "ctr.stop"]


def test_the_end_of_a_start_does_not_stop_a_later_one(ada: Caller, far: FarEnd, lab: str) -> None:
    """The first one fails late, when the second one runs already, with GPUs of its own."""

    def overtaken(_call: Any) -> str:
        present = states.of_id(lab)
        assert present is not None
        states.move(present, "stopped", "start_timeout")
        far.answers["ctr.start"] = STARTED
        workspaces.start(ada, "lab")
        close_database()
        return "timeout"

    far.answers |= {"ctr.start": overtaken, "ctr.inspect": NOT_RUNNING}
    with pytest.raises(errors.EngineTimeout):
        workspaces.start(ada, "lab")
    assert "ctr.stop" not in far.verbs()
    assert workspaces.get(ada, "lab")["status"] == "running"
    assert len(leases.of(lab)) == 2
