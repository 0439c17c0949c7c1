"""The idle policy: what a template's document says happens with a workspace in which nothing happens.

"Stop only when GPU, CPU, terminal, exec and port traffic are all quiet." The
worker looks (svc.worker.idle), the rules are here. `idle_since` is the first
look that found all quiet since something happened; whatever reaches into a
workspace says so by touch(), and an owner's extend() holds the policy off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import after, now
from svc.domain import audit
from svc.domain.gpus import hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.principal import Caller
from svc.domain.workspaces import records, states
from svc.errors import WorkspaceNotRunning
from svc.limits import IDLE_CPU_PERCENT, IDLE_GPU_PERCENT

NOTIFY, STOP = "notify", "stop"


class Watched(NamedTuple):
    """A running workspace whose template has an idle policy; its owner, and what the rules need."""

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
    """What a look counted, all of it growing: microseconds of CPU, bytes through ports; and when, in s."""

    at: float
    cpu_usec: int
    forwarded: int
    connections: int  # open just now


_WATCHED = """
SELECT w.id, w.owner_id, u.name, w.container_id, w.status_since, json_extract(r.spec_json, '$.idle.action'),
    json_extract(r.spec_json, '$.idle.after_minutes'), w.idle_since, w.keep_until,
    EXISTS (SELECT 1 FROM ports p WHERE p.workspace_id = w.id)
FROM workspaces w JOIN users u ON u.id = w.owner_id
JOIN template_revisions r ON r.template_id = w.template_id AND r.revision = w.template_revision
WHERE w.status = 'running' AND u.uid IS NOT NULL
    AND json_extract(r.spec_json, '$.idle.action') IN ('notify', 'stop')
    AND json_extract(r.spec_json, '$.idle.after_minutes') > 0
"""


def watched() -> list[Watched]:
    """The running workspaces that have a policy, by owner."""
    return [Watched(*row) for row in database.execute_sql(f"{_WATCHED} ORDER BY w.owner_id, w.id")]


def present(row: Watched) -> Watched | None:
    """The row as it is now; None when it does not run any more, or is not the same run of it."""
    found = database.execute_sql(
        f"{_WATCHED} AND w.id = ? AND w.status_since = ?", (row.id, row.status_since)
    )
    again = found.fetchone()
    return Watched(*again) if again else None


def is_quiet(before: Use | None, use: Use) -> bool:
    """Whether nothing happened between two looks; without one before, nobody can tell, so it is not.

    A counter that went back has begun anew, so something happened.
    """
    if before is None or use.at <= before.at or use.connections or use.forwarded != before.forwarded:
        return False
    used_s = (use.cpu_usec - before.cpu_usec) / 1_000_000
    return 0 <= used_s < (use.at - before.at) * IDLE_CPU_PERCENT / 100


def gpus_are_quiet(row: Watched) -> bool:
    """Whether no GPU that the workspace holds is at work for it; one that is not seen is not quiet.

    A shared one may be busy for another workspace, and of a part of one (MIG) the
    driver tells no figure: then any process of this workspace on it counts.
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
    """Write what a look at the time `at` found; returns what is due: NOTIFY, STOP or nothing."""
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
    """Whether it has been quiet for as long as its template says, and its owner did not ask for more."""
    if row.idle_since is None or at < after(row.idle_since, row.after_minutes * 60):
        return False
    return row.keep_until is None or at >= row.keep_until


def touch(workspace_id: str) -> None:
    """Something happens in a workspace: an exec, a launcher, a terminal's key, a new port.

    Called often, so it writes only what is to be taken back. While nothing is,
    a look can only find quiet from its own time on.
    """
    idle = database.execute_sql(
        "SELECT 1 FROM workspaces WHERE id = ? AND idle_since IS NOT NULL", (workspace_id,)
    )
    if idle.fetchone():
        with write():
            database.execute_sql("UPDATE workspaces SET idle_since = NULL WHERE id = ?", (workspace_id,))


def forget_ended() -> None:
    """What does not run is not idle."""
    ended = "idle_since IS NOT NULL AND status IN ('stopped', 'failed')"
    if database.execute_sql(f"SELECT 1 FROM workspaces WHERE {ended} LIMIT 1").fetchone():
        with write():
            database.execute_sql(f"UPDATE workspaces SET idle_since = NULL WHERE {ended}")


def notify(row: Watched) -> None:
    """The audit row of a workspace that has become idle; its record shows since when."""
    detail = {"since": row.idle_since, "after_minutes": row.after_minutes}
    rid = f"idle-{row.id}"
    audit.append_by_worker(row.owner_id, row.owner, "workspace.idle", row.id, row.action, rid, **detail)


def extend(caller: Caller, ref: str, hours: int) -> dict[str, Any]:
    """Hold the idle policy off for so many hours from now; returns the record. Raises WorkspaceNotRunning."""
    workspace = states.find(caller, ref)
    if workspace.status != "running":
        raise WorkspaceNotRunning(
            f"{workspace.name} is not running, so nothing would stop it",
            hint=f"svc ws start {workspace.name}",
        )
    with write():
        states.set_columns(workspace, keep_until=after(now(), hours * 3600))
        audit.add(caller, "workspace.extend", workspace.id, "ok", hours=hours)
    return records.one(workspace.id)
