"""Launchers: "named apps with captured output", started and stopped inside a running workspace.

What they are is written in the template's document, at the workspace's own
revision; the workspace's shim runs them and keeps their output, which "stays
readable while the workspace is stopped". The owner's alone, as exec is. Nothing
in a launcher's command and variables is expanded; one that serves a named port
finds that port's container port in SVC_PORT. Records:

    {name, title, port, autostart, state (stopped, started, exited), exit_code, started_at, finished_at,
     host_port, url}
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from svc.domain import audit
from svc.domain import untrusted as answers
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.workspaces import calls, containers, idle, ports, states
from svc.domain.workspaces.states import Workspace
from svc.errors import NotFound, OwnerOnly, SvcError, WorkspaceNotRunning
from svc.limits import (
    CALL_LAUNCHER_S,
    LAUNCHERS_MAX,
    LOG_BYTES_MAX,
    STOP_GRACE_S,
)
from svc.log import log

STATES = ("stopped", "started", "exited")
PORT_VARIABLE = "SVC_PORT"
KNOWN_MAX = 8 * LAUNCHERS_MAX  # rows of one answer: an earlier container's launchers may still have theirs
NEVER: Mapping[str, Any] = {"state": "stopped", "exit_code": None, "started_at": None, "finished_at": None}

Launcher = dict[str, Any]  # of the template's document: name, title, command, env, port, autostart


def listing(caller: Caller, ref: str) -> dict[str, Any]:
    """The launchers of the caller's own workspace and how each is, running or not: {items}."""
    workspace = states.find_own(caller, ref)
    known = _of(workspace)
    found = _ask_states(caller, workspace) if known and workspace.container_id else {}
    return {"items": [_record(workspace, one, found.get(one["name"], NEVER)) for one in known]}


def start(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Start a launcher; of a started one it succeeds. Raises NotFound, WorkspaceNotRunning."""
    workspace = _own(caller, ref, "workspace.launcher_start")
    launcher = _get(workspace, name)
    calls.require_running(caller, workspace)
    idle.touch(workspace.id)
    with audit.audited(caller, "workspace.launcher_start", workspace.id, launcher=name):
        try:
            state = _start(caller, workspace, launcher)
        except (WorkspaceNotRunning, NotFound):
            containers.note_end(caller, workspace)
            raise calls.not_running(workspace) from None
    return _record(workspace, launcher, state)


def stop(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Stop a launcher and all that it has started: TERM, then KILL. Of a stopped one it succeeds."""
    workspace = _own(caller, ref, "workspace.launcher_stop")
    launcher = _get(workspace, name)
    calls.require_running(caller, workspace)
    idle.touch(workspace.id)
    with audit.audited(caller, "workspace.launcher_stop", workspace.id, launcher=name):
        arguments = {"id": workspace.id, "name": name, "grace_s": STOP_GRACE_S}
        try:
            answer = caller.ask("launcher.stop", arguments, timeout_s=STOP_GRACE_S + CALL_LAUNCHER_S)
        except (WorkspaceNotRunning, NotFound):
            containers.note_end(caller, workspace)
            raise calls.not_running(workspace) from None
        state = _checked(answer)
    return _record(workspace, launcher, state)


def logs(caller: Caller, ref: str, name: str, tail: int) -> dict[str, Any]:
    """The newest lines of a launcher's "bounded persistent captured output": {text, truncated}.

    Readable in whatever state the workspace is; empty before its first start.
    """
    workspace = states.find_own(caller, ref)
    _get(workspace, name)
    try:
        arguments = {"id": workspace.id, "name": name, "tail": tail}
        found = caller.ask("launcher.logs", arguments)
    except NotFound:
        return {"text": "", "truncated": False}
    return {
        "text": answers.get_output_text(found, "text", LOG_BYTES_MAX),
        "truncated": answers.get_flag(found, "truncated"),
    }


def autostart(caller: Caller, workspace: Workspace) -> None:
    """After a start: start the launchers that come with it. Never raises: what fails is logged.

    An agent that does not answer is waited for once, not for each of its launchers.
    """
    silent = False
    for launcher in _of(workspace):
        if not launcher["autostart"] or silent:
            continue
        outcome = "ok"
        try:
            _start(caller, workspace, launcher)
        except SvcError as error:
            outcome = error.code
            silent = isinstance(error, answers.SILENT)
            facts = {"workspace": workspace.id, "launcher": launcher["name"], "code": outcome}
            log("domain", "a launcher was not started", "warning", rid=caller.rid, **facts)
        try:
            detail = {"launcher": launcher["name"], "autostart": True}
            audit.add(caller, "workspace.launcher_start", workspace.id, outcome, **detail)
        except SvcError as error:  # the disk of the database is full
            log("domain", "an outcome could not be written", "error", rid=caller.rid, code=error.code)


def require(workspace: Workspace, name: str) -> None:
    """Raise NotFound for a launcher that the workspace does not have."""
    _get(workspace, name)


def _own(caller: Caller, ref: str, action: str) -> Workspace:
    try:
        return states.find_own(caller, ref)
    except OwnerOnly as error:
        audit.add(caller, action, ref, error.code)  # an administrator tried
        raise


# --- the template's document --------------------------------------------------------------


def _document(workspace: Workspace) -> dict[str, Any]:
    return template_rows.at_revision(workspace.template_id, workspace.template_revision).spec


def _of(workspace: Workspace) -> list[Launcher]:
    found: list[Launcher] = _document(workspace)["launchers"]
    return found


def _get(workspace: Workspace, name: str) -> Launcher:
    found = next((one for one in _of(workspace) if one["name"] == name), None)
    if found is None:
        raise NotFound(f"{workspace.name} has no launcher {name}", hint=f"svc ws launchers {workspace.name}")
    return found


def _port(workspace: Workspace, launcher: Launcher) -> ports.Port | None:
    """The port that the launcher serves; None without one, or after its removal."""
    rows = ports.rows_of(workspace.id) if launcher["port"] else []
    return next((row for row in rows if row.name == launcher["port"]), None)


def _served(workspace: Workspace, launcher: Launcher) -> int | None:
    """Where in the container it is meant to listen: as the port's row says, else as the template does."""
    port = _port(workspace, launcher)
    if port:
        return port.container_port
    of_template = _document(workspace)["ports"] if launcher["port"] else []
    return next((one["container_port"] for one in of_template if one["name"] == launcher["port"]), None)


def _record(workspace: Workspace, launcher: Launcher, state: Mapping[str, Any]) -> dict[str, Any]:
    port = _port(workspace, launcher)
    shown = port.record(None) if port else {"host_port": None, "url": None}
    return {
        **{key: launcher[key] for key in ("name", "title", "port", "autostart")},
        **state,
        "host_port": shown["host_port"],
        "url": shown["url"],
    }


# --- the shim -------------------------------------------------------------------------


def _start(caller: Caller, workspace: Workspace, launcher: Launcher) -> Mapping[str, Any]:
    env = {pair["name"]: pair["value"] for pair in launcher["env"]}
    port = _served(workspace, launcher)
    if port is not None:
        env = {PORT_VARIABLE: str(port)} | env  # its own word for it comes first
    arguments = {
        "id": workspace.id, "name": launcher["name"], "command": launcher["command"], "env": env,
    }  # fmt: skip
    return _checked(caller.ask("launcher.start", arguments))


def _ask_states(caller: Caller, workspace: Workspace) -> dict[str, Mapping[str, Any]]:
    """How each launcher is that the shim, or what it has left, knows of."""
    try:
        answer = caller.ask("launcher.list", {"id": workspace.id})
    except NotFound:
        return {}
    rows = answers.get_rows(answer, "launchers", KNOWN_MAX)
    return {answers.get_text(row, "name", 63): _checked(row) for row in rows}


def _checked(untrusted: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "state": answers.get_choice(untrusted, "state", STATES),
        "exit_code": answers.find_number(untrusted, "exit_code"),
        "started_at": answers.get_moment(untrusted, "started_at"),
        "finished_at": answers.get_moment(untrusted, "finished_at"),
    }
