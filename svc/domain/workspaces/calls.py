"""Commands run in a workspace's container (exec), for its owner only."""

from __future__ import annotations

from typing import Any

from svc.domain import audit, long_calls
from svc.domain import untrusted as answers
from svc.domain.principal import Caller
from svc.domain.workspaces import idle, running, states
from svc.limits import EXEC_TIMEOUT_DEFAULT_S

EXEC_MARGIN_S = 15  # for the agent to kill what is left after the timeout, and to reply
PROGRAM_MAX = 100  # characters of the program's name that the audit row keeps


def run(
    caller: Caller, ref: str, command: list[str], timeout_s: int = EXEC_TIMEOUT_DEFAULT_S
) -> dict[str, Any]:
    """Run one command: "owner-only, including for administrators", in a running workspace.

    The command ends with the client's connection. Raises OwnerOnly,
    WorkspaceNotRunning, TooManyRequests.
    """
    workspace = states.find_own(caller, ref, "workspace.exec")
    running.require(caller, workspace)
    idle.touch(workspace.id)
    program = command[0][:PROGRAM_MAX]
    with (
        long_calls.counted(caller),
        audit.audited(caller, "workspace.exec", workspace.id, program=program) as detail,
        running.expected(caller, workspace),
    ):
        arguments = {"id": workspace.id, "command": command, "timeout_s": timeout_s}
        result = _checked(
            caller.ask("ctr.exec", arguments, timeout_s=timeout_s + EXEC_MARGIN_S, hangup_fd=caller.hangup_fd)
        )
        detail["exit_code"] = result["exit_code"]
        idle.touch(workspace.id)  # it may have taken a while
        return result


def _checked(untrusted: dict[str, Any]) -> dict[str, Any]:
    return {
        "exit_code": answers.find_number(untrusted, "exit_code"),
        "stdout": answers.get_output(untrusted, "stdout"),
        "stderr": answers.get_output(untrusted, "stderr"),
        "truncated": answers.get_flag(untrusted, "truncated"),
        "timed_out": answers.get_flag(untrusted, "timed_out"),
        "duration_ms": answers.get_number(untrusted, "duration_ms"),
    }
