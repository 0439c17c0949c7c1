"""One look: the agent's figures checked, the host's own word on GPUs beside them."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import errors, limits
from svc.db.connect import database
from svc.domain.gpus import hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.gpus.gpus import Gpu, Hardware
from svc.domain.gpus.use import Use
from svc.domain.principal import Caller
from svc.domain.workspaces import monitor, states

UUIDS = ("GPU-0", "GPU-1", "GPU-2")


@pytest.fixture
def lab(ada: Caller, template: str) -> str:
    return make_workspace(
        ada.user_id, template, status="running", container_id=CONTAINER, cpu_limit=1500, pids_limit=64
    )


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    """The workspace uses GPU-0 by two processes; GPU-2 has been lost since it was leased."""
    known = [
        Gpu(uuid=uuid, model="NVIDIA H100", vram_bytes=1000, compute_capability="9.0", mig=False)
        for uuid in UUIDS[:2]
    ]
    uses = [Use(11, "ada", 5, "GPU-0"), Use(12, "ada", None, "GPU-0")]
    monkeypatch.setattr(hardware, "inventory", lambda: Hardware("x", "550", "12.4", known))
    monkeypatch.setattr(hardware, "utilization", lambda: {"GPU-0": 80, "GPU-1": 3})
    monkeypatch.setattr(gpu_use, "of_container", lambda container: uses if container == CONTAINER else [])


def lease(workspace: str, *uuids: str) -> None:
    for uuid in uuids:
        database.execute_sql(
            "INSERT INTO gpu_leases VALUES (?, ?, 'exclusive', '2025-01-01T00:00:00.000Z')", (uuid, workspace)
        )


def test_a_look(ada: Caller, far: FarEnd, lab: str) -> None:
    found = monitor.snapshot(ada, "lab")
    assert found.pop("at").endswith("Z")
    assert found == {
        "source": "cgroup", "cpu_percent": 12.5, "sampled_ms": 100, "cpu_limit": None, "memory_bytes": 4096,
        "memory_limit_bytes": None, "pids": 2, "pids_limit": None, "gpus": [], "more_processes": 0,
        "processes": [
            {"pid": 7, "parent": 1, "command": "sleep 5", "cpu_percent": 12.5, "memory_bytes": 4096}
        ],
    }  # fmt: skip
    assert far.calls[-1].args == {"id": lab, "sample_ms": limits.STATS_SAMPLE_MS}


def test_limits_are_those_in_force(ada: Caller, far: FarEnd, lab: str) -> None:
    """What the workspace asked for is in its record; here is what the kernel holds."""
    far.answers["ctr.stats"] |= {"cpu_limit": 250, "pids_limit": 60, "memory_limit_bytes": 1 << 20}
    found = monitor.snapshot(ada, "lab")
    assert (found["cpu_limit"], found["pids_limit"], found["memory_limit_bytes"]) == (0.25, 60, 1 << 20)


def test_gpus_are_those_leased_and_those_used(ada: Caller, far: FarEnd, lab: str, gpus: None) -> None:
    lease(lab, "GPU-1", "GPU-2")
    first, second, lost = monitor.snapshot(ada, "lab")["gpus"]
    assert first == {
        "uuid": "GPU-0", "model": "NVIDIA H100", "vram_bytes": 1000, "used_bytes": 5,
        "utilization_percent": 80,
        "processes": [{"pid": 11, "used_bytes": 5}, {"pid": 12, "used_bytes": None}],
    }  # fmt: skip
    assert (second["uuid"], second["used_bytes"], second["processes"]) == ("GPU-1", 0, [])
    assert (lost["uuid"], lost["model"], lost["utilization_percent"]) == ("GPU-2", None, None)


def test_only_of_a_running_one(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.WorkspaceNotRunning) as caught:
        monitor.snapshot(ada, "lab")
    assert caught.value.hint == "svc ws start lab"
    assert far.verbs() == []


def test_one_that_ended_unseen_is_noted(ada: Caller, far: FarEnd, lab: str) -> None:
    far.answers |= {"ctr.stats": "not_running", "ctr.inspect": {"exists": True, "status": "exited"}}
    with pytest.raises(errors.WorkspaceNotRunning):
        monitor.snapshot(ada, "lab")
    assert states.find(ada, "lab").status == "stopped"


def test_another_users_does_not_exist(bob: Caller, boss: Caller, far: FarEnd, lab: str) -> None:
    for caller in (bob, boss):
        with pytest.raises(errors.NotFound):
            monitor.snapshot(caller, lab)
    assert far.verbs() == []


@pytest.mark.parametrize(
    "change",
    [
        {"source": "guess"},
        {"cpu_percent": float(2**70)},
        {"cpu_percent": "12"},
        {"cpu_percent": -1},
        {"cpu_percent": True},
        {"memory_bytes": -1},
        {"memory_limit_bytes": "x"},
        {"memory_limit_bytes": 1.5},
        {"pids": None},
        {"pids_limit": "x"},
        {"cpu_limit": 1.5},
        {"more_processes": -1},
        {"processes": {}},
        {"processes": [5]},
        {"processes": [{"pid": 1}]},
        {"processes": [{"pid": 1}] * 51},
    ],
)
def test_a_hostile_agents_answer_is_refused(
    ada: Caller, far: FarEnd, lab: str, change: dict[str, Any]
) -> None:
    far.answers["ctr.stats"] = far.answers["ctr.stats"] | change
    with pytest.raises(errors.EngineFailed):
        monitor.snapshot(ada, "lab")


@pytest.mark.parametrize("command", [5, "x" * 201, None])
def test_a_hostile_command_is_refused(ada: Caller, far: FarEnd, lab: str, command: Any) -> None:
    process = far.answers["ctr.stats"]["processes"][0] | {"command": command}
    far.answers["ctr.stats"] = far.answers["ctr.stats"] | {"processes": [process]}
    with pytest.raises(errors.EngineFailed):
        monitor.snapshot(ada, "lab")
