"""What reaches into a workspace's container: exec and logs, the owner's alone."""

from __future__ import annotations

from typing import Any

from svc.domain import answers, audit, containers, long_calls
from svc.domain import workspace_states as states
from svc.domain.callers import Caller
from svc.domain.workspace_states import Workspace
from svc.errors import NotFound, OwnerOnly, WorkspaceNotRunning
from svc.limits import CALL_QUICK_S, EXEC_TIMEOUT_DEFAULT_S, LOG_BYTES_MAX

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
    if workspace.status != "running":
        if not containers.runs_unseen(caller, workspace):
            raise _not_running(workspace)
        states.move(workspace, "running")
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
            raise _not_running(workspace) from None
        shown = _checked(result)
        detail["exit_code"] = shown["exit_code"]
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


def _not_running(workspace: Workspace) -> WorkspaceNotRunning:
    return WorkspaceNotRunning(f"{workspace.name} is not running", hint=f"svc ws start {workspace.name}")


def logs(caller: Caller, ref: str, tail: int) -> dict[str, Any]:
    """The newest lines that the container wrote: {text, truncated}; empty before its first start."""
    workspace = states.find(caller, ref)
    try:
        found = caller.ask("ctr.logs", {"id": workspace.id, "tail": tail}, timeout_s=CALL_QUICK_S)
    except NotFound:
        return {"text": "", "truncated": False}
    return {
        "text": answers.get_output_text(found, "text", LOG_BYTES_MAX),
        "truncated": answers.get_flag(found, "truncated"),
    }
