"""What reaches into a workspace's container: exec, the owner's alone."""

from __future__ import annotations

from typing import Any

from svc.domain import audit, long_calls
from svc.domain import untrusted as answers
from svc.domain.principal import Caller
from svc.domain.workspaces import containers, idle, states
from svc.domain.workspaces.states import Workspace
from svc.errors import NotFound, OwnerOnly, WorkspaceNotRunning
from svc.limits import EXEC_TIMEOUT_DEFAULT_S

EXEC_MARGIN_S = 15  # for the agent to end what a timeout left behind and to answer
WORD_MAX = 100  # characters of a command's first word that the audit row keeps


def run(
    caller: Caller, ref: str, command: list[str], timeout_s: int = EXEC_TIMEOUT_DEFAULT_S
) -> dict[str, Any]:
    """Run one command: "owner-only, including for administrators", in a running workspace.

    Ends with the client: its connection is watched. Raises OwnerOnly,
    WorkspaceNotRunning, TooManyRequests.
    """
    try:
        workspace = states.find_own(caller, ref)
    except OwnerOnly as error:
        audit.add(caller, "workspace.exec", ref, error.code)  # an administrator tried
        raise
    require_running(caller, workspace)
    idle.touch(workspace.id)
    with (
        long_calls.counted(caller),
        audit.audited(caller, "workspace.exec", workspace.id, program=command[0][:WORD_MAX]) as detail,
    ):
        try:
            result = caller.ask(
                "ctr.exec",
                {"id": workspace.id, "command": command, "timeout_s": timeout_s},
                timeout_s=timeout_s + EXEC_MARGIN_S,
                hangup_fd=caller.hangup_fd,
            )
        except (WorkspaceNotRunning, NotFound):
            containers.note_end(caller, workspace)
            raise not_running(workspace) from None
        shown = _checked(result)
        detail["exit_code"] = shown["exit_code"]
        idle.touch(workspace.id)  # it may have taken a while
        return shown


def _checked(untrusted: dict[str, Any]) -> dict[str, Any]:
    return {
        "exit_code": answers.find_number(untrusted, "exit_code"),
        "stdout": answers.get_output(untrusted, "stdout"),
        "stderr": answers.get_output(untrusted, "stderr"),
        "truncated": answers.get_flag(untrusted, "truncated"),
        "timed_out": answers.get_flag(untrusted, "timed_out"),
        "duration_ms": answers.get_number(untrusted, "duration_ms"),
    }


def require_running(caller: Caller, workspace: Workspace) -> None:
    """Raise WorkspaceNotRunning unless it runs, also where its user has started it by hand."""
    if workspace.status == "running":
        return
    if not containers.runs_unseen(caller, workspace):
        raise not_running(workspace)
    states.move(workspace, "running")


def not_running(workspace: Workspace) -> WorkspaceNotRunning:
    """The refusal of what needs a running workspace, which says how to make it one."""
    return WorkspaceNotRunning(f"{workspace.name} is not running", hint=f"svc ws start {workspace.name}")
