"""Terminals of a running workspace: "owner-only, including for administrators".

The workspace's shim holds them: they outlive the viewer, the listener, the agent and
any restart of the service, and end with the workspace, with their command, when they
are closed or after TERMINAL_IDLE_S. What is typed and shown goes from the viewer's
socket to the shim past everything else, and is never logged. Records:

    {id, title, command, cols, rows, viewers, state (running, exited), exit_code, opened_at, active_at}
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from svc.actions.commands import command
from svc.actions.table import TERMINAL_ATTACH, TERMINAL_CLOSE, TERMINAL_OPEN, WORKSPACE_RESTART, Action
from svc.domain import pages, untrusted
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.workspaces import calls, containers, idle, states
from svc.domain.workspaces.live.attached import Attached
from svc.domain.workspaces.states import Workspace
from svc.errors import EngineFailed, NotFound, TooManyTerminals, WorkspaceOutdated
from svc.helper.replies import escaped
from svc_helper.wire.limits import EXEC_ARGS_MAX, TERMINAL_ID, TERMINAL_SIDE_MAX, TERMINALS_MAX

STATES = ("running", "exited")
PROGRAM_MAX = 100  # characters of the program's name that the audit row keeps
TITLE_MAX = 256
KNOWN_MAX = 2 * TERMINALS_MAX  # rows of one reply


def listing(caller: Caller, ref: str) -> dict[str, Any]:
    """The terminals of the caller's own workspace: {items, max}; none while it is stopped."""
    workspace = states.find_own(caller, ref)
    return pages.whole(_rows(caller, workspace) if workspace.container_id else [], max=TERMINALS_MAX)


def open_(caller: Caller, ref: str, cols: int, rows: int, command: list[str] | None = None) -> dict[str, Any]:
    """Open a terminal to which nobody is attached yet; its record.

    Without a command it has the user's shell. Raises OwnerOnly, WorkspaceNotRunning,
    TooManyTerminals, WorkspaceOutdated, and CommandNotFound for a command that cannot be run.
    """
    workspace = _require(caller, ref, TERMINAL_OPEN)
    arguments = _opening(workspace, cols, rows, command) | {"attach": False}
    with _opening_audited(caller, workspace, command) as detail:
        record = _record(caller.ask("terminal.open", arguments))
        detail["terminal"] = record["id"]
    return record


@contextmanager
def opened(
    caller: Caller, ref: str, cols: int, rows: int, command: list[str] | None = None
) -> Iterator[Attached]:
    """As open_(), and attached from its first byte, in one call; leaving the block only detaches."""
    workspace = _require(caller, ref, TERMINAL_OPEN)
    arguments = _opening(workspace, cols, rows, command) | {"attach": True}
    with ExitStack() as viewing:
        with _opening_audited(caller, workspace, command) as detail:
            reply, stream = viewing.enter_context(caller.attached("terminal.open", arguments))
            record = _record(reply)
            detail["terminal"] = record["id"]
        yield Attached(workspace.id, record, stream)


@contextmanager
def attached(caller: Caller, ref: str, terminal_id: str, cols: int, rows: int) -> Iterator[Attached]:
    """Attached to a terminal for the length of the block; of one that has ended its last output is shown.

    Raises NotFound, and as open_() does.
    """
    workspace = _require(caller, ref, TERMINAL_ATTACH)
    _require_id(workspace, terminal_id)
    arguments = {"id": workspace.id, "terminal": terminal_id, "cols": cols, "rows": rows}
    with ExitStack() as viewing:
        with (
            audit.audited(caller, TERMINAL_ATTACH, workspace.id, terminal=terminal_id),
            _explaining(workspace),
            _finding(caller, workspace, terminal_id),
        ):
            reply, stream = viewing.enter_context(caller.attached("terminal.attach", arguments))
            record = _record(reply)
        yield Attached(workspace.id, record, stream)


def close(caller: Caller, ref: str, terminal_id: str) -> None:
    """Close a terminal, as its window: it hangs up, and kills the command if that stays.

    Raises NotFound for one that does not exist, or has been closed.
    """
    workspace = _require(caller, ref, TERMINAL_CLOSE)
    _require_id(workspace, terminal_id)
    arguments = {"id": workspace.id, "terminal": terminal_id}
    with (
        audit.audited(caller, TERMINAL_CLOSE, workspace.id, terminal=terminal_id),
        _finding(caller, workspace, terminal_id),
    ):
        caller.ask("terminal.close", arguments)


def _require(caller: Caller, ref: str, action: Action) -> Workspace:
    workspace = states.find_own(caller, ref, action)
    calls.require_running(caller, workspace)
    idle.touch(workspace.id)
    return workspace


def _opening(workspace: Workspace, cols: int, rows: int, command: list[str] | None) -> dict[str, Any]:
    return {"id": workspace.id, "cols": cols, "rows": rows, "command": command}


@contextmanager
def _opening_audited(
    caller: Caller, workspace: Workspace, command: list[str] | None
) -> Iterator[dict[str, Any]]:
    program = {"program": command[0][:PROGRAM_MAX]} if command else {}
    with (
        audit.audited(caller, TERMINAL_OPEN, workspace.id, **program) as detail,
        _explaining(workspace),
        calls.expect_running(caller, workspace),
    ):
        yield detail


@contextmanager
def _explaining(workspace: Workspace) -> Iterator[None]:
    """Give the refusals of the workspace's shim the command that helps."""
    try:
        yield
    except TooManyTerminals as error:
        error.hint = error.hint or f"svc ws shell {workspace.name} --list"
        raise
    except WorkspaceOutdated as error:
        error.hint = command(WORKSPACE_RESTART, ref=workspace.name)
        raise


@contextmanager
def _finding(caller: Caller, workspace: Workspace, terminal_id: str) -> Iterator[None]:
    """For a call about one terminal: tell a missing terminal from a missing container."""
    missing = False
    with calls.expect_running(caller, workspace):
        try:
            yield
        except NotFound:
            missing = containers.is_running(caller, workspace)
            if not missing:
                raise
    if missing:
        raise _no_such(workspace, terminal_id)


def _require_id(workspace: Workspace, terminal_id: str) -> None:
    """Raise NotFound for what is no id: the helper takes a call with one for a fault of the service."""
    if not re.fullmatch(TERMINAL_ID, terminal_id):
        raise _no_such(workspace, terminal_id)


def _no_such(workspace: Workspace, terminal_id: str) -> NotFound:
    message = f"{workspace.name} has no terminal {terminal_id[:PROGRAM_MAX]}"
    return NotFound(message, hint=f"svc ws shell {workspace.name} --list")


# --- the shim -------------------------------------------------------------------------


def _rows(caller: Caller, workspace: Workspace) -> list[dict[str, Any]]:
    try:
        reply = caller.ask("terminal.list", {"id": workspace.id})
    except NotFound:
        return []
    return [_checked(row) for row in untrusted.get_rows(reply, "terminals", KNOWN_MAX)]


def _record(reply: Mapping[str, Any]) -> dict[str, Any]:
    row = reply.get("terminal")
    if type(row) is not dict:
        raise EngineFailed("the engine's answer has no usable terminal")
    return _checked(row)


def _checked(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": _id(row),
        "title": escaped(untrusted.get_text(row, "title"), TITLE_MAX),
        "command": _command(row.get("command")),
        "cols": _side(row, "cols"),
        "rows": _side(row, "rows"),
        "viewers": untrusted.get_count(row, "viewers"),
        "state": untrusted.get_choice(row, "state", STATES),
        "exit_code": untrusted.find_number(row, "exit_code"),
        "opened_at": untrusted.get_moment(row, "opened_at"),
        "active_at": untrusted.get_moment(row, "active_at"),
    }


def _id(row: Mapping[str, Any]) -> str:
    value = untrusted.get_text(row, "id", 8)
    if not re.fullmatch(TERMINAL_ID, value):
        raise EngineFailed("the engine's answer has no usable id")
    return value


def _command(value: Any) -> list[str] | None:
    if value is None:
        return None
    if type(value) is not list or len(value) > EXEC_ARGS_MAX or not all(type(item) is str for item in value):
        raise EngineFailed("the engine's answer has no usable command")
    return [escaped(item) for item in value]


def _side(row: Mapping[str, Any], key: str) -> int:
    value = untrusted.get_number(row, key)
    if not 1 <= value <= TERMINAL_SIDE_MAX:
        raise EngineFailed(f"the engine's answer has no usable {key}")
    return value
