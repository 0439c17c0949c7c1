"""The health of workspaces with GPUs: `gpu_lost` while the driver does not list one of them, else `ok`.

When a GPU falls off the bus or the driver stops, processes of the workspace lose
it, but the workspace keeps running. Workspaces without GPUs and those that are not
running have the health `unknown`.
"""

from __future__ import annotations

from svc.db.connect import database, write
from svc.domain.gpus import hardware
from svc.log import log

UNKNOWN, OK, GPU_LOST = "unknown", "ok", "gpu_lost"

_HELD = (
    "SELECT w.id, w.health, l.gpu FROM gpu_leases l CROSS JOIN workspaces w ON w.id = l.workspace_id"
    " WHERE w.status = 'running'"
)
_OVER = (
    "health <> 'unknown' AND (status <> 'running'"
    " OR NOT EXISTS (SELECT 1 FROM gpu_leases l WHERE l.workspace_id = workspaces.id))"
)


def due() -> bool:
    """Whether there is anything to update; does not call the driver."""
    return bool(
        database.execute_sql(
            f"SELECT EXISTS (SELECT 1 FROM gpu_leases) OR EXISTS (SELECT 1 FROM workspaces WHERE {_OVER})"
        ).fetchone()[0]
    )


def update() -> None:
    """Read the GPUs and write the health of each workspace; blocks on the driver."""
    present = {gpu.uuid for gpu in hardware.inventory().gpus}
    before: dict[str, str] = {}
    lost: dict[str, list[str]] = {}
    for workspace_id, health, gpu in database.execute_sql(_HELD).fetchall():
        before[workspace_id] = health
        if gpu not in present:
            lost.setdefault(workspace_id, []).append(gpu)
    for workspace_id, health in before.items():
        after = GPU_LOST if workspace_id in lost else OK
        if after != health:
            _write(workspace_id, after, lost.get(workspace_id, []))
    if database.execute_sql(f"SELECT 1 FROM workspaces WHERE {_OVER} LIMIT 1").fetchone():
        with write():
            database.execute_sql(f"UPDATE workspaces SET health = ? WHERE {_OVER}", (UNKNOWN,))


def _write(workspace_id: str, health: str, lost: list[str]) -> None:
    with write():
        database.execute_sql(
            "UPDATE workspaces SET health = ? WHERE id = ? AND status = 'running'", (health, workspace_id)
        )
    if lost:
        log("domain", "a workspace has lost GPUs", "error", workspace=workspace_id, gpus=" ".join(lost))
    else:
        log("domain", "the GPUs of a workspace are present", workspace=workspace_id)
