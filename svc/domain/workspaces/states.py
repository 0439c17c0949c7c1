"""A workspace's row and its compare-and-set: who may see it, and one winner per transition.

    creating -> stopped        starting -> running | stopped | failed
    stopping -> stopped        deleting -> (gone)        stopping -> deleting | starting

Every change of status is a compare-and-set on status and status_since in a BEGIN
IMMEDIATE transaction, so that two starts, a start and an edit or a start and a
delete have one winner. The transitions themselves are in transitions.py.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.actions import commands
from svc.actions.table import Action
from svc.db.connect import database, write
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.quotas.quotas import Claim
from svc.domain.templates import rows as template_rows
from svc.domain.templates.rows import Template
from svc.domain.workspaces.reconcile_rules import RESTORED
from svc.errors import NotFound, OperationInProgress, OwnerOnly, SvcError
from svc.host.ids import now

STEADY = ("stopped", "running", "failed")


class Workspace(NamedTuple):
    """The columns of a workspace's row that transitions and calls need."""

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
    work: int | None  # in a transition: the number of the call that carries it out (svc.db.held)
    container_id: str | None
    image_digest: str | None  # of the image that its container was made from
    stale: int
    started_at: str | None
    stopped_at: str | None
    cpu_limit: int | None
    memory_bytes: int | None
    shm_bytes: int | None
    pids_limit: int | None
    gpu_count: int
    gpu_mode: str
    env_json: str
    network: str | None  # a name among its owner's; None without one
    command_json: str | None  # of its own; None for the template's

    @property
    def env(self) -> dict[str, str]:
        """The workspace's own variables."""
        env: dict[str, str] = json.loads(self.env_json)
        return env

    @property
    def command(self) -> list[str] | None:
        """Its main command: its own, else the template's; None for the image's."""
        command: list[str] | None = json.loads(self.command_json) if self.command_json else None
        return command or self.template.spec["command"]

    @property
    def template(self) -> Template:
        """The template at the workspace's revision."""
        return template_rows.at_revision(self.template_id, self.template_revision)

    @property
    def claim(self) -> Claim:
        """What a start takes of the owner's quota."""
        return Claim(self.id, self.owner_id, self.name, self.cpu_limit, self.memory_bytes, self.gpu_count)

    def began_at(self, former_status: str) -> str:
        """When the run began that was found: now, unless it is one of which no end was seen.

        By the time of an earlier run a later end would be taken for one by a reboot of the host.
        """
        before = self.started_at
        may_go_on = former_status in ("stopping", "failed") or self.status_reason == RESTORED
        goes_on = before and may_go_on and (self.stopped_at or "") < before
        return before if before and goes_on else now()

    def command_with(self, resources: dict[str, Any]) -> str:
        """The command that gives it other resources."""
        return commands.edit(self.name, {"resources": resources})


_COLUMNS = ", ".join(f"w.{name}" if name != "owner" else "u.name" for name in Workspace._fields)
_SELECT = f"SELECT {_COLUMNS} FROM workspaces w JOIN users u ON u.id = w.owner_id"


def find(caller: Caller, ref: str, owner: str | None = None) -> Workspace:
    """The owner's workspace of that id or name; raises NotFound, identical for an unknown and another's."""
    row = database.execute_sql(
        f"{_SELECT} WHERE w.owner_id = ?1 AND (w.id = ?2 OR w.name = ?2) ORDER BY w.id = ?2 DESC LIMIT 1",
        (users.owner_id(caller, owner), ref),
    ).fetchone()
    if row is None:
        raise NotFound(f"no workspace {ref}", hint=_elsewhere(caller, ref, owner))
    return Workspace(*row)


def _elsewhere(caller: Caller, ref: str, owner: str | None) -> str:
    """For an administrator, the command for another user's workspace of this id, or the only one so named."""
    if not caller.administers:
        return "svc ws list"
    rows = database.execute_sql(
        "SELECT w.id, u.name FROM workspaces w JOIN users u ON u.id = w.owner_id"
        " WHERE w.id = ?1 OR w.name = ?1 ORDER BY w.id = ?1 DESC LIMIT 2",
        (ref,),
    ).fetchall()
    if not rows or (len(rows) > 1 and rows[0][0] != ref):
        return "svc ws list --all"
    return f"svc ws get {rows[0][0]} --owner {rows[0][1]}"


def find_own(caller: Caller, ref: str, action: Action | None = None) -> Workspace:
    """The caller's own workspace, for what is "owner-only, including for administrators".

    Raises NotFound, and OwnerOnly for an administrator; that leaves an audit row of the `action`.
    """
    try:
        return find(caller, ref)
    except NotFound:
        known = database.execute_sql(
            "SELECT u.name FROM workspaces w JOIN users u ON u.id = w.owner_id WHERE w.id = ?", (ref,)
        ).fetchone()
        if not caller.administers or not known:
            raise
    refusal = OwnerOnly(
        f"{ref} is another user's workspace; only its owner runs commands in it",
        hint=f"svc ws get {ref} --owner {known[0]}",
    )
    if action:
        audit.add(caller, action, ref, refusal.code)
    raise refusal


def of_id(workspace_id: str) -> Workspace | None:
    """The row of an id, whoever owns it; None when it is gone."""
    row = database.execute_sql(f"{_SELECT} WHERE w.id = ?", (workspace_id,)).fetchone()
    return Workspace(*row) if row else None


def find_unchanged(workspace_id: str, status: str, status_since: str) -> Workspace | None:
    """The row of that id while it has this status since then; None once anybody has changed it."""
    row = database.execute_sql(
        f"{_SELECT} WHERE w.id = ? AND w.status = ? AND w.status_since = ?",
        (workspace_id, status, status_since),
    ).fetchone()
    return Workspace(*row) if row else None


def is_unchanged(workspace: Workspace) -> bool:
    """Whether the row still has the status that the caller read or wrote."""
    return find_unchanged(workspace.id, workspace.status, workspace.status_since) is not None


def move(workspace: Workspace, status: str, reason: str | None = None, **columns: Any) -> bool:
    """Set the status by compare-and-set; False when the row has changed since the caller read it."""
    at = now()
    changes = {"status": status, "status_reason": reason, "status_since": at, "updated_at": at}
    changes |= {"work": None} | columns
    with write():
        changed = database.execute_sql(
            f"UPDATE workspaces SET {', '.join(f'{name} = ?' for name in changes)}"
            " WHERE id = ? AND status = ? AND status_since = ?",
            (*changes.values(), workspace.id, workspace.status, workspace.status_since),
        ).rowcount
    return bool(changed)


def take(
    workspace: Workspace, work: int, status: str, reason: str | None = None, **columns: Any
) -> Workspace | None:
    """Begin a transition from any status; returns the row as it is then, None when it has changed.

    The caller holds `work` until the row has its next status: once nobody holds it, the reconciler
    resolves the row. An edit may have come between the caller's read and this: only the returned
    row is right.
    """
    with write():
        return of_id(workspace.id) if move(workspace, status, reason, work=work, **columns) else None


def claim(workspace: Workspace, work: int, status: str, reason: str | None = None) -> Workspace:
    """Begin a transition; raises OperationInProgress when another one is under way or was first."""
    claimed = take(workspace, work, status, reason) if workspace.status in STEADY else None
    if claimed is None:
        raise in_progress(workspace)
    return claimed


def in_progress(workspace: Workspace) -> SvcError:
    """The error for the second of two simultaneous requests."""
    return OperationInProgress(
        f"the workspace {workspace.name} is being changed by another request",
        hint="svc ws list",
        retry_after_s=1,
    )


def set_columns(workspace: Workspace, **columns: Any) -> None:
    """Set columns other than the status."""
    names = ", ".join(f"{name} = ?" for name in columns)
    with write():
        database.execute_sql(f"UPDATE workspaces SET {names} WHERE id = ?", (*columns.values(), workspace.id))


def remove(workspace: Workspace) -> bool:
    """Delete the row by compare-and-set; False when it has changed since the caller read it."""
    with write():
        changed = database.execute_sql(
            "DELETE FROM workspaces WHERE id = ? AND status = ? AND status_since = ?",
            (workspace.id, workspace.status, workspace.status_since),
        ).rowcount
    return bool(changed)
