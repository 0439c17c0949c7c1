"""What a running workspace uses: "One-shot CPU, memory, GPU and process snapshot".

CPU, memory, processes and the limits that the kernel holds come from the owner's agent,
so every field is checked; a limit that the host does not apply is null. CPU use is that of
the last sampled_ms: since the snapshot before, if that was a moment ago. GPU use comes
from the host's driver. The samples of a live stream have the same form. Record:

    {at, source (cgroup, proc), cpu_percent (of one core), sampled_ms, cpu_limit (cores), memory_bytes,
     memory_limit_bytes, pids, pids_limit, gpus: [{uuid, model, vram_bytes, used_bytes, utilization_percent,
     processes: [{pid, used_bytes}]}], processes: [{pid, parent, command, cpu_percent, memory_bytes}],
     more_processes}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.domain import untrusted
from svc.domain.gpus import hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.gpus.gpus import Gpu
from svc.domain.principal import Caller
from svc.domain.quotas import resources
from svc.domain.workspaces import calls, leases, states
from svc.domain.workspaces.states import Workspace
from svc.host.ids import now
from svc.limits import PROCESSES_MAX, STATS_SAMPLE_MS

SOURCES = ("cgroup", "proc")
COMMAND_MAX = 200


def snapshot(caller: Caller, ref: str, sample_ms: int = STATS_SAMPLE_MS) -> dict[str, Any]:
    """What the running workspace uses now, CPU over sample_ms at least. Raises WorkspaceNotRunning."""
    workspace = states.find(caller, ref)
    calls.require_running(caller, workspace)
    with calls.expect_running(caller, workspace):
        arguments = {"id": workspace.id, "sample_ms": sample_ms}
        reply = caller.ask("ctr.stats", arguments)
    return {"at": now(), **_checked(reply), "gpus": gpus(workspace)}


def watchable(caller: Caller, ref: str) -> str:
    """The id of the caller's running workspace, for a live stream. Raises WorkspaceNotRunning."""
    workspace = states.find(caller, ref)
    calls.require_running(caller, workspace)
    return workspace.id


def gpus(workspace: Workspace) -> list[dict[str, Any]]:
    """The GPUs that a workspace has leased or that its processes use, and how much of each."""
    uses = gpu_use.of_container(workspace.container_id) if workspace.container_id else []
    uuids = {*leases.of(workspace.id), *(use.gpu for use in uses)}
    if not uuids:
        return []
    known = {gpu.uuid: gpu for gpu in hardware.inventory().gpus}
    busy = hardware.utilization()
    return [_gpu(uuid, known.get(uuid), busy.get(uuid), uses) for uuid in sorted(uuids)]


def _gpu(
    uuid: str, known: Gpu | None, utilization_percent: int | None, uses: list[gpu_use.Use]
) -> dict[str, Any]:
    """One GPU; a lost one has its uuid only."""
    mine = [use for use in uses if use.gpu == uuid]
    return {
        "uuid": uuid,
        "model": known.model if known else None,
        "vram_bytes": known.vram_bytes if known else None,
        "used_bytes": sum(use.used_bytes or 0 for use in mine),
        "utilization_percent": utilization_percent,
        "processes": [{"pid": use.pid, "used_bytes": use.used_bytes} for use in mine],
    }


def _checked(reply: Mapping[str, Any]) -> dict[str, Any]:
    cpu_limit = untrusted.find_number(reply, "cpu_limit")
    return {
        "source": untrusted.get_choice(reply, "source", SOURCES),
        "cpu_percent": untrusted.get_amount(reply, "cpu_percent"),
        "sampled_ms": untrusted.get_count(reply, "sampled_ms"),
        "cpu_limit": None if cpu_limit is None else cpu_limit / resources.THOUSANDTHS,
        "memory_bytes": untrusted.get_count(reply, "memory_bytes"),
        "memory_limit_bytes": untrusted.find_number(reply, "memory_limit_bytes"),
        "pids": untrusted.get_count(reply, "pids"),
        "pids_limit": untrusted.find_number(reply, "pids_limit"),
        "processes": [
            {
                "pid": untrusted.get_count(one, "pid"),
                "parent": untrusted.get_count(one, "parent"),
                "command": untrusted.get_output_text(one, "command", COMMAND_MAX),
                "cpu_percent": untrusted.get_amount(one, "cpu_percent"),
                "memory_bytes": untrusted.get_count(one, "memory_bytes"),
            }
            for one in untrusted.get_rows(reply, "processes", PROCESSES_MAX)
        ],
        "more_processes": untrusted.get_count(reply, "more_processes"),
    }
