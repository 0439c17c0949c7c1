"""Whether a workspace runs: what a call into its container requires, and the row corrected by Podman.

"Podman is the truth for running and stopped": its user may have started or
stopped the container by hand.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from svc.db.ids import now
from svc.domain import operations
from svc.domain.principal import Caller
from svc.domain.workspaces import containers, states
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineUnavailable, NotFound, SvcError, WorkspaceNotRunning


def require(caller: Caller, workspace: Workspace) -> None:
    """Raise WorkspaceNotRunning unless it runs; the row is corrected if it was started by hand."""
    if workspace.status == "running":
        return
    if not runs_unseen(caller, workspace):
        raise _not_running(workspace)
    states.move(workspace, "running")


@contextmanager
def expected(caller: Caller, workspace: Workspace) -> Iterator[None]:
    """For a call into the container: if that finds it ended, correct the row, raise WorkspaceNotRunning."""
    try:
        yield
    except (WorkspaceNotRunning, NotFound):
        note_end(caller, workspace)
        raise _not_running(workspace) from None


def _not_running(workspace: Workspace) -> WorkspaceNotRunning:
    return WorkspaceNotRunning(f"{workspace.name} is not running", hint=f"svc ws start {workspace.name}")


def runs_unseen(caller: Caller, workspace: Workspace) -> bool:
    """Whether the caller's workspace runs although its row says stopped: started by hand."""
    if not workspace.container_id or workspace.status not in ("stopped", "failed"):
        return False
    if workspace.owner_id != caller.user_id:
        return False
    try:
        return containers.is_running(caller, workspace)
    except EngineUnavailable:
        return False


def note_end(caller: Caller, workspace: Workspace) -> None:
    """After a call that found the container of a running workspace ended: correct the row."""
    try:
        if not containers.is_running(caller, workspace):
            states.move(workspace, "stopped", "container_exited", stopped_at=now())
    except SvcError:
        operations.wake()  # the reconciler will inspect it
