"""Quotas: "a named policy with a default" that limits what a user may have; null is unlimited.

The quota of a start or a new workspace is "checked and taken in one BEGIN
IMMEDIATE": both checks run inside the caller's own write(). Starting, running and
stopping workspaces count with the resources of their rows; a GPU counts for as long
as its lease, whatever the state of the workspace.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from svc.actions import commands
from svc.actions.table import WORKSPACE_STOP
from svc.db.connect import database
from svc.domain import sizes
from svc.domain.quotas.resources import THOUSANDTHS
from svc.errors import QuotaExceeded

DEFAULT = "default"  # of accounts without a policy
RUNNING = ("starting", "running", "stopping")  # the states that use resources of the host


class Quota(NamedTuple):
    """One policy; every number may be None."""

    name: str
    max_workspaces: int | None
    max_running: int | None
    max_gpus: int | None
    max_cpu: int | None  # thousandths of a core
    max_memory_bytes: int | None
    max_image_bytes: int | None


class Claim(NamedTuple):
    """The resources of a workspace at its start; `cpu_limit` in thousandths of a core, None is unlimited."""

    id: str
    owner_id: int
    name: str
    cpu_limit: int | None
    memory_bytes: int | None
    gpu_count: int
    command_with: Callable[[dict[str, Any]], str] | None = None  # of a workspace that is not created


class Used(NamedTuple):
    """A user's use of the limited resources; `cpu` in thousandths of a core."""

    workspaces: int
    running: int
    gpus: int
    cpu: int
    memory_bytes: int


def of(user_id: int) -> Quota:
    """The policy of a user."""
    row = database.execute_sql(
        f"SELECT q.{', q.'.join(Quota._fields)} FROM quotas q"
        " WHERE q.name = coalesce((SELECT quota FROM users WHERE id = ?), ?)",
        (user_id, DEFAULT),
    ).fetchone()
    return Quota(*row) if row else Quota(DEFAULT, *[None] * (len(Quota._fields) - 1))


def record(quota: Quota) -> dict[str, Any]:
    """The policy in the API's units: `max_cpu` in cores."""
    return quota._asdict() | {"max_cpu": cores(quota.max_cpu)}


def cores(thousandths: int | None) -> float | None:
    """Thousandths of a core as cores."""
    return None if thousandths is None else thousandths / THOUSANDTHS


def used(user_id: int, quota: Quota, without: str = "") -> Used:
    """A user's present use, excluding the workspace with the id `without`.

    A running workspace without a limit counts with the policy's whole limit, since it
    could use all of it.
    """
    row = database.execute_sql(
        f"""SELECT count(*), coalesce(sum(runs), 0), coalesce(sum(max(iif(runs, gpu_count, 0), leased)), 0),
            coalesce(sum(iif(runs, coalesce(cpu_limit, ?), 0)), 0),
            coalesce(sum(iif(runs, coalesce(memory_bytes, ?), 0)), 0)
        FROM (SELECT w.*, w.status IN ('{"', '".join(RUNNING)}') AS runs,
            (SELECT count(*) FROM gpu_leases l WHERE l.workspace_id = w.id) AS leased
            FROM workspaces w WHERE w.owner_id = ? AND w.id <> ?)""",
        (quota.max_cpu or 0, quota.max_memory_bytes or 0, user_id, without),
    ).fetchone()
    return Used(*row)


# --- checks ---------------------------------------------------------------------


def require_room(user_id: int) -> None:
    """Raise QuotaExceeded when the policy allows no further workspace.

    Called before, and again inside the write() that inserts its row.
    """
    quota = of(user_id)
    if quota.max_workspaces is None:
        return
    count = used(user_id, quota).workspaces
    if count >= quota.max_workspaces:
        raise _exceeded(
            f"your quota ({quota.name}) has {_format('workspaces', quota.max_workspaces)}; you have {count}",
            "svc ws list",
            ("workspaces", quota.max_workspaces, count, 1),
        )


def require_start(claim: Claim) -> None:
    """Raise QuotaExceeded when the workspace does not fit the policy beside its owner's running ones.

    Called inside the write() that has set its row to `starting`, which counts once.
    """
    quota = of(claim.owner_id)
    if (quota.max_running, quota.max_gpus, quota.max_cpu, quota.max_memory_bytes) == (None,) * 4:
        return
    others = used(claim.owner_id, quota, without=claim.id)
    _require(claim, quota, "running", quota.max_running, others.running, 1)
    _require(claim, quota, "gpus", quota.max_gpus, others.gpus, claim.gpu_count)
    _require_limits(claim, quota, others)
    _require(claim, quota, "cpu", quota.max_cpu, others.cpu, claim.cpu_limit or 0)
    _require(
        claim, quota, "memory_bytes", quota.max_memory_bytes, others.memory_bytes,
        claim.memory_bytes or 0,
    )  # fmt: skip


# resource: its key in a workspace's resources, its unit in messages, the minimum of a workspace
_RESOURCES = {
    "workspaces": ("", "workspaces", 1),
    "running": ("", "running workspaces", 1),
    "gpus": ("gpu_count", "GPUs", 0),
    "cpu": ("cpu_limit", "cores", THOUSANDTHS // 100),
    "memory_bytes": ("memory_bytes", "of memory", 4 * 2**20),
}


def _require(
    claim: Claim, quota: Quota, resource: str, limit: int | None, taken: int, requested: int
) -> None:
    if limit is None or not requested or taken + requested <= limit:
        return
    key, _, least = _RESOURCES[resource]
    if requested > limit and key:
        message = f"{claim.name} requests {_format(resource, requested)}; your quota ({quota.name}) has"
        message += f" {_format(resource, limit)}"
        hint = _edit(claim, {key: _api(resource, limit)}) if limit >= least else "svc ws capacity"
    else:
        message = (
            f"your quota ({quota.name}) has {_format(resource, limit)}, {_number(resource, taken)} taken;"
        )
        message += f" {claim.name} needs {_number(resource, requested)} more"
        hint = _stop_command(claim, key)
    raise _exceeded(message, hint, (resource, limit, taken, requested))


def _require_limits(claim: Claim, quota: Quota, others: Used) -> None:
    """Raise QuotaExceeded for a workspace without a limit on a resource that its owner's policy limits."""
    unset = {
        resource: (limit, taken)
        for resource, own, limit, taken in (
            ("cpu", claim.cpu_limit, quota.max_cpu, others.cpu),
            ("memory_bytes", claim.memory_bytes, quota.max_memory_bytes, others.memory_bytes),
        )
        if own is None and limit is not None
    }
    if not unset:
        return
    nouns = " and no ".join({"cpu": "CPU limit", "memory_bytes": "memory limit"}[name] for name in unset)
    full = [name for name, (limit, taken) in unset.items() if limit - taken < _RESOURCES[name][2]]
    left = {_RESOURCES[name][0]: _api(name, limit - taken) for name, (limit, taken) in unset.items()}
    resource = next(iter(full or unset))
    limit, taken = unset[resource]
    raise _exceeded(
        f"{claim.name} has no {nouns}, and your quota ({quota.name}) has {_format(resource, limit)}"
        f" for all your workspaces, {_number(resource, taken)} taken",
        _stop_command(claim, _RESOURCES[resource][0]) if full else _edit(claim, left),
        (resource, limit, taken, None),
    )


def require_image_bytes(limit: int | None, used: int, requested: int, under_way: int = 0) -> None:
    """Raise QuotaExceeded when a user's images would exceed the policy, with the bytes of those under way."""
    if limit is None or used + under_way + requested <= limit:
        return
    others = f", others that are under way need {sizes.format_bytes(under_way)}" if under_way else ""
    raise _exceeded(
        f"your images may take {sizes.format_bytes(limit)}; they take {sizes.format_bytes(used)}{others},"
        f" and this needs {sizes.format_bytes(requested)} more",
        "svc operation list" if used + requested <= limit else "svc image prune",
        ("image_bytes", limit, used + under_way, requested),
    )


def _exceeded(message: str, hint: str, amounts: tuple[str, int, int, int | None]) -> QuotaExceeded:
    """`amounts`: resource, limit, used and requested (None: unlimited), in the units of the rows."""
    resource, *numbers = amounts
    values = [None if number is None else _api(resource, number) for number in numbers]
    details = dict(zip(("resource", "limit", "used", "requested"), (resource, *values), strict=True))
    return QuotaExceeded(message, hint=hint, details=details)


def _api(resource: str, amount: int) -> float:
    """An amount in the API's unit: cores for CPU, otherwise unchanged."""
    return amount / THOUSANDTHS if resource == "cpu" else amount


def _number(resource: str, amount: int) -> str:
    """An amount without its unit: 1.5, 3, 2.0 GiB."""
    return sizes.format_bytes(amount) if resource.endswith("_bytes") else f"{_api(resource, amount):g}"


def _format(resource: str, amount: int) -> str:
    """An amount with its unit: 1 core, 3 GPUs, 2.0 GiB of memory."""
    unit = _RESOURCES[resource][1]
    one = _api(resource, amount) == 1 and unit.endswith("s")
    return f"{_number(resource, amount)} {unit.removesuffix('s') if one else unit}"


def _edit(claim: Claim, resources: dict[str, float]) -> str:
    """The command that sets these resources of a workspace."""
    if claim.command_with:
        return claim.command_with(resources)
    return commands.edit(claim.name, {"resources": resources})


def _stop_command(claim: Claim, key: str) -> str:
    """The command that stops the running workspace with the most of a resource, else the list command."""
    order = f"coalesce({key}, {2**62}) DESC," if key else ""
    row = database.execute_sql(
        "SELECT name FROM workspaces WHERE owner_id = ? AND id <> ? AND status = 'running'"
        f" ORDER BY {order} started_at LIMIT 1",
        (claim.owner_id, claim.id),
    ).fetchone()
    return commands.command(WORKSPACE_STOP, ref=row[0]) if row else "svc ws list"
