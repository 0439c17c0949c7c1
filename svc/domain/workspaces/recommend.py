"""Recommended resources for a GPU use case: "the safe defaults the web composer would show".

"Reserves nothing": the result is what the host, the template and the caller's
quota allow at this moment.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from svc.actions.commands import action_of
from svc.domain.principal import Caller
from svc.domain.quotas import quotas, usage
from svc.domain.quotas.quotas import Claim
from svc.domain.quotas.resources import THOUSANDTHS
from svc.domain.templates import rows as template_rows
from svc.domain.templates import templates
from svc.domain.templates.rows import Template
from svc.domain.workspaces import capacity, commands, leases
from svc.domain.workspaces.capacity import Host
from svc.domain.workspaces.leases import EXCLUSIVE, SHARED
from svc.errors import QuotaExceeded
from svc.limits import GPU_USE_CASES

MODES = (EXCLUSIVE, SHARED)
CAPACITY = "svc ws capacity"
GIB, MIB = 2**30, 2**20
NO_GPU_SHARE = 1 / 8  # of the host, for a workspace without GPUs
CPU_LEAST, MEMORY_LEAST = 0.01, 4 * MIB  # of any workspace
SHM_SHARE = 1 / 4  # of the memory, for GPU work whose template names none: frameworks pass tensors there


class Situation(NamedTuple):
    """The facts from which a recommendation is computed."""

    host: Host
    gpus: int  # of the host
    fitting: int  # of those, usable for this template
    free: dict[str, int]  # of those, free now; by mode
    spec: dict[str, Any]  # of the template
    left: dict[str, Any]  # of the caller's quota; None is unlimited


def of(caller: Caller, template_ref: str, use_case: str) -> dict[str, Any]:
    """The recommendation for a template and use case; raises NotFound, TemplateDisabled.

    {template, gpu_use_case, resources, allocatable_now, blocked_by, message, hint, action, alternatives,
    command};
    `blocked_by` is no_gpu (none is present or fits), template, quota, gpu_busy or None.
    """
    template = templates.usable(caller, template_ref)
    situation = _situation(caller, template)
    resources, blocked_by = _level(situation, use_case)
    to_set = dict(resources)
    if not resources["gpu_count"] and not template.spec["defaults"].get("gpu_count"):
        to_set["gpu_count"] = None  # as the template has it
    return {
        "template": {"id": template.id, "name": template.name},
        "gpu_use_case": use_case,
        "resources": resources,
        "allocatable_now": blocked_by is None,
        "blocked_by": blocked_by,
        **_reason(caller, template, situation, use_case, blocked_by),
        "alternatives": [
            {"gpu_use_case": other, "resources": found[0], "allocatable_now": found[1] is None}
            for other in GPU_USE_CASES
            if other != use_case
            for found in [_level(situation, other)]
        ],
        "command": commands.set_up_and_start(template_ref, commands.free_name(caller, template), to_set),
    }


def _situation(caller: Caller, template: Template) -> Situation:
    spec, offer, quota = template.spec, leases.offer(), quotas.of(caller.user_id)
    needs = spec["gpu"]
    return Situation(
        host=capacity.host(),
        gpus=len(offer.leasable),
        fitting=len(offer.usable(needs)),
        free={mode: len(leases.available(offer, mode, needs)) for mode in MODES},
        spec=spec,
        left=usage.remaining(quota, usage.amounts(caller.user_id, quota)),
    )


def _reason(
    caller: Caller, template: Template, at: Situation, use_case: str, blocked_by: str | None
) -> dict[str, Any]:
    """{message, hint, action}: what is in the way, and the command that shows or removes it."""
    free = at.free[_mode(at, use_case)]
    needed = _gpu_count(at, use_case, free)
    gpus = f"{needed} GPU{'' if needed == 1 else 's'}"
    get_template = f"svc template get {template_rows.reference(caller.user_id, template.id)}"
    reasons: dict[str | None, tuple[str | None, str | None]] = {
        None: (None, None),
        "no_gpu": ("this host has no GPU that suits the template", "svc servers hardware"),
        "template": ("the template allows no GPUs", get_template),
        "gpu_busy": (f"{gpus} of {at.gpus} needed, and {free or 'none'} free", CAPACITY),
        "quota": ("your quota has no room for another running workspace", CAPACITY),
    }
    message, hint = reasons[blocked_by]
    if blocked_by == "quota":
        try:
            quotas.require_room(caller.user_id)
            least = (round(CPU_LEAST * THOUSANDTHS), MEMORY_LEAST, needed)
            quotas.require_start(Claim("", caller.user_id, "it", *least))
        except QuotaExceeded as error:
            message = error.message
            hint = CAPACITY if " edit it " in (error.hint or "") else error.hint
    return {"message": message, "hint": hint, "action": action_of(hint)}


def _level(at: Situation, use_case: str) -> tuple[dict[str, Any], str | None]:
    """The resources of one use case, and what prevents having them now."""
    mode = _mode(at, use_case)
    available = at.free[mode]
    count, blocked_by = _gpu_count(at, use_case, available), None
    limit, left = at.spec["limits"].get("gpu_count"), at.left["gpus"]
    if count:
        count = min(number for number in (count, at.fitting, limit, left) if number is not None)
        if not at.fitting:
            blocked_by = "no_gpu"
        elif not count:
            blocked_by = "template" if limit == 0 else "quota"
        elif count > available:
            blocked_by = "gpu_busy"
    share = count / at.gpus if count else NO_GPU_SHARE
    cpus, memory = _cpus(at, share), _memory(at, share)
    if blocked_by in (None, "gpu_busy") and _spent(at):
        blocked_by = "quota"
    resources = {
        "cpu_limit": cpus,
        "memory_bytes": memory,
        "shm_bytes": _shm(at, count, memory),
        "pids_limit": at.spec["defaults"].get("pids_limit") or at.spec["limits"].get("pids_limit"),
        "gpu_count": count,
        "gpu_mode": mode,
    }
    return resources, blocked_by


def _mode(at: Situation, use_case: str) -> str:
    """`light` is shared where the template allows it; `standard` has the template's default."""
    if not at.spec["gpu"].get("allow_shared"):
        return EXCLUSIVE
    own = at.spec["defaults"].get("gpu_mode") or EXCLUSIVE
    return {"light": SHARED, "standard": own}.get(use_case, EXCLUSIVE)


def _gpu_count(at: Situation, use_case: str, available: int) -> int:
    """The number of GPUs of a use case; at least one except for `none`, also while none is free."""
    return {
        "none": 0,
        "light": 1,
        "standard": max(1, at.spec["defaults"].get("gpu_count") or 0),
        "heavy": max(1, math.ceil(available / 2)),
        "max": max(1, available),
    }[use_case]


def _cpus(at: Situation, share: float) -> float:
    """Cores: a whole number from one on, within the template's limit and the quota."""
    cpus = max(1.0, math.floor(at.host.cpus * share))
    cpus = min(
        most for most in (cpus, at.spec["limits"].get("cpu_limit"), at.left["cpu"]) if most is not None
    )
    return max(CPU_LEAST, math.floor(cpus * 100) / 100)


def _memory(at: Situation, share: float) -> int:
    """Bytes: whole GiB from one GiB on, else whole MiB."""
    bounds = (at.host.memory_bytes * share, at.spec["limits"].get("memory_bytes"), at.left["memory_bytes"])
    memory = int(min(most for most in bounds if most is not None))
    unit = GIB if memory >= GIB else MIB
    return max(MEMORY_LEAST, memory // unit * unit)


def _shm(at: Situation, count: int, memory: int) -> int | None:
    own = at.spec["defaults"].get("shm_bytes")
    if own is None and count:
        own = int(memory * SHM_SHARE)
    limit: int | None = at.spec["limits"].get("shm_bytes")
    return limit if own is None else own if limit is None else min(own, limit)


def _spent(at: Situation) -> bool:
    """Whether the quota has no room for another running workspace."""
    least = {"workspaces": 1, "running": 1, "cpu": CPU_LEAST, "memory_bytes": MEMORY_LEAST}
    return any(at.left[key] is not None and at.left[key] < amount for key, amount in least.items())
