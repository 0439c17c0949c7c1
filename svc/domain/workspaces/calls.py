"""Calls into a running workspace: what each of them requires, and exec.

"Podman is the truth for running and stopped": its user may have started or stopped
the container by hand, and then the row is corrected.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from svc.actions.commands import command
from svc.actions.table import WORKSPACE_EXEC, WORKSPACE_START
from svc.domain import operations, untrusted
from svc.domain.audit import audit
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import containers, idle, reconcile_rules, states
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineUnavailable, NotFound, SvcError, WorkspaceNotRunning
from svc.host.ids import now
from svc.limits import EXEC_TIMEOUT_DEFAULT_S
from svc_helper.wire.limits import EXEC_ARGS_BYTES_MAX, EXEC_ARGS_MAX

EXEC_MARGIN_S = 15  # for the agent to kill what is left after the timeout, and to reply
PROGRAM_MAX = 100  # characters of the program's name that the audit row keeps


def run(
    caller: Caller, ref: str, command: list[str], timeout_s: int = EXEC_TIMEOUT_DEFAULT_S
) -> dict[str, Any]:
    """Run one command: "owner-only, including for administrators", in a running workspace.

    The command ends with the client's connection. Raises OwnerOnly,
    WorkspaceNotRunning, TooManyRequests.
    """
    workspace = states.find_own(caller, ref, WORKSPACE_EXEC)
    require_running(caller, workspace)
    idle.touch(workspace.id)
    program = command[0][:PROGRAM_MAX]
    arguments: dict[str, Any] = {"id": workspace.id, "command": command, "timeout_s": timeout_s}
    options: dict[str, Any] = {"timeout_s": timeout_s + EXEC_MARGIN_S, "hangup_fd": caller.hangup_fd}
    with (
        beside_the_message(arguments) as options["input_fd"],
        long_calls.counted(caller),
        audit.audited(caller, WORKSPACE_EXEC, workspace.id, program=program) as detail,
        expect_running(caller, workspace),
    ):
        result = _checked(caller.ask("ctr.exec", arguments, **options))
        detail["exit_code"] = result["exit_code"]
        idle.touch(workspace.id)  # it may have taken a while
        return result


@contextmanager
def beside_the_message(arguments: dict[str, Any]) -> Iterator[int | None]:
    """For a command that is too long for a message, a file with its words; None for another.

    It goes to the agent past the root helper, which never reads it.
    """
    command = arguments["command"]
    if len(command) <= EXEC_ARGS_MAX and len(json.dumps(command)) <= EXEC_ARGS_BYTES_MAX:
        yield None
        return
    arguments["command"] = None
    with open(os.memfd_create("svc-command", os.MFD_CLOEXEC), "wb") as file:
        file.writelines(argument.encode() + b"\0" for argument in command)
        file.flush()
        yield file.fileno()


def _checked(reply: dict[str, Any]) -> dict[str, Any]:
    return {
        "exit_code": untrusted.find_number(reply, "exit_code"),
        "stdout": untrusted.get_output(reply, "stdout"),
        "stderr": untrusted.get_output(reply, "stderr"),
        "truncated": untrusted.get_flag(reply, "truncated"),
        "timed_out": untrusted.get_flag(reply, "timed_out"),
        "duration_ms": untrusted.get_number(reply, "duration_ms"),
    }


# --- what a call requires ------------------------------------------------------------------


def require_running(caller: Caller, workspace: Workspace) -> None:
    """Raise WorkspaceNotRunning unless it runs; the row is corrected if it was started by hand."""
    if workspace.status == "running":
        return
    if not runs_unseen(caller, workspace):
        raise _not_running(workspace)
    states.move(workspace, "running", started_at=workspace.began_at(workspace.status))


@contextmanager
def expect_running(caller: Caller, workspace: Workspace) -> Iterator[None]:
    """For a call into the container: if that finds it ended, correct the row, raise WorkspaceNotRunning."""
    try:
        yield
    except (WorkspaceNotRunning, NotFound):
        note_end(caller, workspace)
        raise _not_running(workspace) from None


def _not_running(workspace: Workspace) -> WorkspaceNotRunning:
    return WorkspaceNotRunning(
        f"{workspace.name} is not running", hint=command(WORKSPACE_START, ref=workspace.name)
    )


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
    """After a call that found the container of a running workspace ended: correct the row.

    With the reason that the reconciler would give: after a reboot an owner's call may come before the
    worker's first inspection, and only `host_reboot` has the workspace started again.
    """
    try:
        seen = containers.inspect(caller, workspace)
        if seen is None or not seen.running:
            rebooted = bool(workspace.started_at and workspace.started_at < reconcile_rules.booted_at())
            reason = reconcile_rules.end_reason(seen, rebooted=rebooted)
            exit_code = seen.exit_code if seen else None
            states.move(workspace, "stopped", reason, stopped_at=now(), exit_code=exit_code)
    except SvcError:
        pass  # the reconciler will inspect it
    operations.wake()
