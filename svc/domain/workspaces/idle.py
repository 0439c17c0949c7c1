"""The idle policy of a template's document: notify about, or stop, a workspace that is not used.

"Stop only when GPU, CPU, terminal, exec and port traffic are all quiet." The
worker measures (svc.worker.idle); the rules are here. `idle_since` is the time of
the first measurement since the last activity that found everything quiet. Calls
into a workspace reset it by touch(), and an owner's extend() suspends the policy.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from svc.actions.commands import command
from svc.actions.table import WORKSPACE_EXTEND, WORKSPACE_IDLE, WORKSPACE_START
from svc.db.connect import database, write
from svc.domain.audit import audit
from svc.domain.gpus import hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.principal import Caller
from svc.domain.templates.rows import SPEC
from svc.domain.workspaces import records, states
from svc.errors import WorkspaceNotRunning
from svc.host.ids import after, now
from svc.limits import IDLE_CPU_PERCENT, IDLE_GPU_PERCENT

NOTIFY, STOP = "notify", "stop"


class Watched(NamedTuple):
    """A running workspace whose template has an idle policy: the columns that the rules need."""

    id: str
    owner_id: int
    owner: str
    container_id: str | None
    status_since: str
    action: str
    after_minutes: int
    idle_since: str | None
    keep_until: str | None
    has_ports: int


class Use(NamedTuple):
    """One measurement, at the time `at` in seconds: growing counters of CPU time and bytes through ports."""

    at: float
    cpu_usec: int
    forwarded: int
    connections: int  # open now, not a counter


_WATCHED = f"""
SELECT w.id, w.owner_id, u.name, w.container_id, w.status_since, json_extract({SPEC}, '$.idle.action'),
    json_extract({SPEC}, '$.idle.after_minutes'), w.idle_since, w.keep_until,
    EXISTS (SELECT 1 FROM ports p WHERE p.workspace_id = w.id)
FROM workspaces w JOIN users u ON u.id = w.owner_id
JOIN template_revisions r ON r.template_id = w.template_id AND r.revision = w.template_revision
WHERE w.status = 'running' AND w.status <> 'stopped' AND u.uid IS NOT NULL
    AND json_extract({SPEC}, '$.idle.action') IN ('notify', 'stop')
    AND json_extract({SPEC}, '$.idle.after_minutes') > 0
"""


def watched() -> list[Watched]:
    """The running workspaces with a policy, ordered by owner."""
    return [Watched(*row) for row in database.execute_sql(f"{_WATCHED} ORDER BY w.owner_id, w.id")]


def present(row: Watched) -> Watched | None:
    """The row as it is now; None once that run of it has ended."""
    found = database.execute_sql(
        f"{_WATCHED} AND w.id = ? AND w.status_since = ?", (row.id, row.status_since)
    ).fetchone()
    return Watched(*found) if found else None


def is_quiet(before: Use | None, use: Use) -> bool:
    """Whether nothing happened between two measurements; False without a former one.

    A counter that decreased was reset, so something happened.
    """
    if before is None or use.at <= before.at or use.connections or use.forwarded != before.forwarded:
        return False
    used_s = (use.cpu_usec - before.cpu_usec) / 1_000_000
    return 0 <= used_s < (use.at - before.at) * IDLE_CPU_PERCENT / 100


def gpus_are_quiet(row: Watched) -> bool:
    """Whether no GPU that the workspace holds works for it; one that the driver does not list may.

    A shared GPU may be busy for another workspace, and for a part of one (MIG) the
    driver has no utilization: then any process of this workspace on it counts.
    """
    leases = database.execute_sql("SELECT gpu, mode FROM gpu_leases WHERE workspace_id = ?", (row.id,))
    held = dict(leases.fetchall())
    if not held:
        return True
    if not held.keys() <= {gpu.uuid for gpu in hardware.inventory().gpus}:
        return False
    percent = hardware.utilization()
    busy = {gpu for gpu in held if percent.get(gpu, IDLE_GPU_PERCENT) >= IDLE_GPU_PERCENT}
    if any(held[gpu] == "exclusive" and gpu in percent for gpu in busy):
        return False
    return not busy or not busy & {use.gpu for use in gpu_use.of_container(row.container_id or "")}


def judge(row: Watched, *, quiet: bool, at: str) -> str | None:
    """Note a measurement made at the time `at`; returns the action that is due: NOTIFY, STOP or None."""
    if not quiet:
        touch(row.id)
        return None
    if row.idle_since is None:
        with write():
            database.execute_sql(
                "UPDATE workspaces SET idle_since = ? WHERE id = ? AND status_since = ?",
                (at, row.id, row.status_since),
            )
        return None
    return row.action if is_due(row, at) else None


def is_due(row: Watched, at: str) -> bool:
    """Whether it has been idle for the policy's time, and its owner has not suspended the policy."""
    if row.idle_since is None or at < after(row.idle_since, row.after_minutes * 60):
        return False
    return row.keep_until is None or at >= row.keep_until


def touch(workspace_id: str) -> None:
    """Note activity in a workspace: an exec, a launcher, a terminal's key, a new port.

    Called often, so it writes only if `idle_since` is set; otherwise the next
    measurement sets its own time at the earliest.
    """
    _reset("id = ?", workspace_id)


def forget_ended() -> None:
    """Reset `idle_since` of workspaces that do not run."""
    _reset("status IN ('stopped', 'failed')")


def _reset(where: str, *values: str) -> None:
    where = f"WHERE idle_since IS NOT NULL AND {where}"
    if database.execute_sql(f"SELECT 1 FROM workspaces {where} LIMIT 1", values).fetchone():
        with write():
            database.execute_sql(f"UPDATE workspaces SET idle_since = NULL {where}", values)


def notify(row: Watched) -> None:
    """Write the audit row of a workspace whose idle action is due."""
    detail = {"since": row.idle_since, "after_minutes": row.after_minutes}
    rid = f"idle-{row.id}"
    actor = audit.Actor(row.owner_id, row.owner, "worker")
    audit.append(actor, WORKSPACE_IDLE, row.id, row.action, rid, detail)


def extend(caller: Caller, ref: str, hours: int) -> dict[str, Any]:
    """Suspend the idle policy for `hours` from now; returns the record. Raises WorkspaceNotRunning."""
    workspace = states.find(caller, ref)
    if workspace.status != "running":
        raise WorkspaceNotRunning(
            f"{workspace.name} is not running; the idle policy applies to running workspaces only",
            hint=command(WORKSPACE_START, ref=workspace.name),
        )
    with write():
        states.set_columns(workspace, keep_until=after(now(), hours * 3600))
        audit.add(caller, WORKSPACE_EXTEND, workspace.id, "ok", hours=hours)
    return records.one(workspace.id)
