"""A workspace's row and its states: who may see it, and one winner per transition.

    creating -> stopped        starting -> running | stopped | failed
    stopping -> stopped        deleting -> (gone)

Every transition is a compare-and-set on status and status_since in a BEGIN
IMMEDIATE transaction, so that two starts, a start and an edit or a start and a
delete have one winner. A transition is left by success or by failure; what a
dead process leaves behind, the worker's reconciler ends.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain.accounts import users
from svc.domain.principal import Caller
from svc.domain.quotas.quotas import Claim
from svc.errors import NotFound, OperationInProgress, OwnerOnly, SvcError

STEADY = ("stopped", "running", "failed")


class Workspace(NamedTuple):
    """What deciding and acting need of a workspace's row."""

    id: str
    owner_id: int
    owner: str
    name: str
    status: str
    status_reason: str | None
    status_since: str
    template_id: str
    template_revision: int
    image_ref: str
    container_id: str | None
    stale: int
    started_at: str | None
    cpu_limit: int | None
    memory_bytes: int | None
    shm_bytes: int | None
    pids_limit: int | None
    gpu_count: int
    gpu_mode: str
    env_json: str

    @property
    def env(self) -> dict[str, str]:
        """The workspace's own variables."""
        env: dict[str, str] = json.loads(self.env_json)
        return env

    @property
    def claim(self) -> Claim:
        """What its start asks of the owner's quota."""
        return Claim(self.id, self.owner_id, self.name, self.cpu_limit, self.memory_bytes, self.gpu_count)


_SELECT = (
    "SELECT w.id, w.owner_id, u.name, w.name, w.status, w.status_reason, w.status_since, w.template_id,"
    " w.template_revision, w.image_ref, w.container_id, w.stale, w.started_at, w.cpu_limit, w.memory_bytes,"
    " w.shm_bytes, w.pids_limit, w.gpu_count, w.gpu_mode, w.env_json"
    " FROM workspaces w JOIN users u ON u.id = w.owner_id"
)


def find(caller: Caller, ref: str, owner: str | None = None) -> Workspace:
    """The workspace of that id, or of the owner's name for it; raises NotFound, identical for others'."""
    row = database.execute_sql(
        f"{_SELECT} WHERE w.owner_id = ?1 AND (w.id = ?2 OR w.name = ?2) ORDER BY w.id = ?2 DESC LIMIT 1",
        (users.owner_id(caller, owner), ref),
    ).fetchone()
    if row is None:
        raise NotFound(f"no workspace {ref}", hint="svc ws list")
    return Workspace(*row)


def find_own(caller: Caller, ref: str) -> Workspace:
    """The caller's own workspace, for what is "owner-only, including for administrators" (OwnerOnly)."""
    try:
        return find(caller, ref)
    except NotFound:
        if (
            caller.administers
            and database.execute_sql("SELECT 1 FROM workspaces WHERE id = ?", (ref,)).fetchone()
        ):
            raise OwnerOnly(
                f"{ref} is another user's workspace; only its owner runs commands in it"
            ) from None
        raise


def of_id(workspace_id: str) -> Workspace | None:
    """The row of an id that the service itself gave out; None when it is gone."""
    row = database.execute_sql(f"{_SELECT} WHERE w.id = ?", (workspace_id,)).fetchone()
    return Workspace(*row) if row else None


def move(workspace: Workspace, status: str, reason: str | None = None, **columns: Any) -> bool:
    """Set the status if the row is still as the caller knows it; False when it has moved on."""
    at = now()
    names = "".join(f", {name} = ?" for name in columns)
    with write():
        changed = database.execute_sql(
            f"UPDATE workspaces SET status = ?, status_reason = ?, status_since = ?, updated_at = ?{names}"
            " WHERE id = ? AND status = ? AND status_since = ?",
            (
                status,
                reason,
                at,
                at,
                *columns.values(),
                workspace.id,
                workspace.status,
                workspace.status_since,
            ),
        ).rowcount
    return bool(changed)


def claim(workspace: Workspace, status: str, reason: str | None = None) -> Workspace:
    """Begin a transition; raises OperationInProgress when somebody else is first or under way."""
    if workspace.status not in STEADY or not move(workspace, status, reason):
        raise in_progress(workspace)
    claimed = of_id(workspace.id)  # an edit may have come between the first look and the claim
    if claimed is None or claimed.status != status:
        raise in_progress(workspace)
    return claimed


def is_still(workspace: Workspace) -> bool:
    """Whether the row is as the caller knows it: nobody has ended or taken over what it began."""
    present = of_id(workspace.id)
    return present is not None and (present.status, present.status_since) == (
        workspace.status,
        workspace.status_since,
    )


def in_progress(workspace: Workspace) -> SvcError:
    """The refusal of whoever comes second."""
    return OperationInProgress(
        f"the workspace {workspace.name} is being changed by another request",
        hint="svc ws list",
        retry_after_s=1,
    )


def set_columns(workspace: Workspace, **columns: Any) -> None:
    """Note facts about a workspace that are no change of state."""
    names = ", ".join(f"{name} = ?" for name in columns)
    with write():
        database.execute_sql(f"UPDATE workspaces SET {names} WHERE id = ?", (*columns.values(), workspace.id))


def remove(workspace: Workspace) -> None:
    """Take the row away if it is still the deletion that the caller began."""
    with write():
        database.execute_sql(
            "DELETE FROM workspaces WHERE id = ? AND status = ? AND status_since = ?",
            (workspace.id, workspace.status, workspace.status_since),
        )
