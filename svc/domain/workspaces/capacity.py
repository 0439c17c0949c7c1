""" "Current quota and free headroom": the caller's policy, the host, and who holds each GPU."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from svc.domain.gpus import hardware
from svc.domain.gpus.gpus import Gpu
from svc.domain.principal import Caller
from svc.domain.quotas import quotas, usage
from svc.domain.workspaces import leases
from svc.domain.workspaces.leases import SHARED, Holder, Offer

PROCESSES_MAX = 100  # of one GPU, in one record


class Host(NamedTuple):
    """The machine itself."""

    cpus: int
    memory_bytes: int


def host() -> Host:
    """The CPUs and memory of this machine, in use or not."""
    return Host(os.cpu_count() or 1, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def of(caller: Caller) -> dict[str, Any]:
    """The caller's quota, its use and remainder, the host, and each GPU with its holders.

    {quota{name, max_*}, used{...}, remaining{...}, host{cpus, memory_bytes, gpus, gpus_free},
    gpus[{index, uuid, model, vram_bytes, used_bytes, use_percent, state, mode,
    holders[{owner, workspace, workspace_id, since, outside, mine}], processes[{pid, owner, used_bytes}]}]}
    """
    quota = quotas.of(caller.user_id)
    used = usage.amounts(caller.user_id, quota)
    gpu_records = gpus(caller)
    return {
        "quota": quotas.record(quota),
        "used": used,
        "remaining": usage.remaining(quota, used),
        "host": host()._asdict()
        | {
            "gpus": sum(gpu["state"] != "lost" for gpu in gpu_records),
            "gpus_free": sum(gpu["state"] == "free" for gpu in gpu_records),
        },
        "gpus": gpu_records,
    }


def gpus(caller: Caller) -> list[dict[str, Any]]:
    """Each GPU that can be leased, and those that are leased but no longer present.

    `state` is free, leased (exclusively), shared, busy (used outside svc), lost
    (leased, but the driver does not list it) or unusable (no CDI name; `svc servers
    hardware` has the reason). Ids and names of another user's workspaces are for
    administrators; `processes` are those outside svc.
    """
    offer, held = leases.offer(), leases.holders()
    present = {gpu.uuid: gpu for gpu in offer.leasable}
    lost = {uuid: Gpu(uuid, "", None, None, False) for uuid in held if uuid not in present}
    use = _Use(hardware.used_bytes(), hardware.utilization()) if present else _Use({}, {})
    return [_gpu(caller, gpu, offer, held.get(gpu.uuid, []), use) for gpu in (present | lost).values()]


class _Use(NamedTuple):
    """Used bytes and utilisation in percent, by GPU."""

    used_bytes: dict[str, int]
    percent: dict[str, int]


def _gpu(caller: Caller, gpu: Gpu, offer: Offer, held: list[Holder], use: _Use) -> dict[str, Any]:
    outside = offer.outside.get(gpu.uuid, [])
    users = dict.fromkeys(process.user for process in outside)
    return {
        "index": offer.place(gpu),
        "uuid": gpu.uuid,
        "model": gpu.model or None,
        "vram_bytes": gpu.vram_bytes,
        "used_bytes": use.used_bytes.get(gpu.uuid),
        "use_percent": use.percent.get(gpu.uuid),
        "state": _state(gpu, offer, held),
        "mode": held[0].mode if held else None,
        "holders": [
            *(_workspace(caller, holder) for holder in held),
            *(_holder(user, user == caller.name, outside=True) for user in users),
        ],
        "processes": [
            {"pid": process.pid, "owner": process.user, "used_bytes": process.used_bytes}
            for process in outside[:PROCESSES_MAX]
        ],
    }


def _state(gpu: Gpu, offer: Offer, held: list[Holder]) -> str:
    if gpu not in offer.hardware.gpus:
        return "lost"
    if held:
        return "shared" if held[0].mode == SHARED else "leased"
    if gpu.uuid in offer.outside:
        return "busy"
    return "free" if gpu.uuid in offer.cdi.names else "unusable"


def _workspace(caller: Caller, holder: Holder) -> dict[str, Any]:
    """A workspace with a lease, which only its owner and administrators see."""
    mine = holder.owner_id == caller.user_id
    record = _holder(holder.owner, mine) | {"since": holder.since}
    if mine or caller.administers:
        record |= {"workspace": holder.workspace, "workspace_id": holder.workspace_id}
    return record


def _holder(owner: str, mine: bool, *, outside: bool = False) -> dict[str, Any]:
    return {
        "owner": owner, "workspace": None, "workspace_id": None, "since": None, "outside": outside,
        "mine": mine,
    }  # fmt: skip
