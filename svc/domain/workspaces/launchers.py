"""Launchers: "named apps with captured output", started and stopped inside a running workspace.

They are defined in the template's document, at the workspace's revision; the
workspace's shim runs them and keeps their output, which "stays readable while the
workspace is stopped". Owner-only, as exec is. A launcher's command and variables
are passed unexpanded; SVC_PORT is the container port of the port that it serves.
Records:

    {name, title, port, autostart, state (stopped, started, exited), exit_code, started_at, finished_at,
     kind, host_port, url, connect, ssh, token, link}

From `kind` on they are of the port that it serves; `token` and `link` where the template says how to find
the login token (launcher_tokens.py), of one that has been started.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

from svc.actions.commands import launcher_log
from svc.actions.table import (
    WORKSPACE_LAUNCHER_END,
    WORKSPACE_LAUNCHER_START,
    WORKSPACE_LAUNCHER_STOP,
    Action,
)
from svc.db.connect import database, write
from svc.domain import events, operations, pages, untrusted
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.domain.templates.rows import SPEC
from svc.domain.workspaces import calls, ends, idle, launcher_tokens, ports, states
from svc.domain.workspaces.states import Workspace
from svc.errors import NotFound, SvcError, WorkspaceNotRunning
from svc.limits import CALL_LAUNCHER_S, LAUNCHERS_MAX, STOP_GRACE_S
from svc.log import log

STARTED, EXITED = "started", "exited"
STATES = ("stopped", STARTED, EXITED)
EVENT = "launcher.status_changed"
PORT_VARIABLE = "SVC_PORT"
START_WATCH_MS = 2000  # "A start waits up to two seconds": sooner when each listens on its port
LAUNCHER_WATCH_MS = 1000  # a mistake in a command, or a program that is missing, shows by then
KNOWN_MAX = 8 * LAUNCHERS_MAX  # rows of one reply, which may have launchers of an earlier container
NONE_BEGUN: dict[str, Any] = {"launchers_failed": [], "launchers_not_listening": []}
NEVER: Mapping[str, Any] = {"state": "stopped", "exit_code": None, "started_at": None, "finished_at": None}

Launcher = dict[str, Any]  # of the template's document: name, title, command, env, port, autostart


def listing(caller: Caller, ref: str) -> dict[str, Any]:
    """The launchers of the caller's own workspace and their states: {items}."""
    workspace = states.find_own(caller, ref)
    known = _of(workspace)
    found = _ask_states(caller, workspace) if known and workspace.container_id else {}
    items, replying = [], True
    for one in known:
        state, token = found.get(one["name"], NEVER), None
        if state["state"] == STARTED and replying:
            try:
                token = launcher_tokens.find(caller, workspace, one)
            except SvcError:
                replying = False
        items.append(_record(workspace, one, state, token))
    return pages.whole(items)


def states_of(caller: Caller, workspace: Workspace) -> list[dict[str, Any]]:
    """The launchers of a running workspace, {name, state, exit_code} each, in the template's order."""
    known = _of(workspace)
    found = _ask_states(caller, workspace) if known else {}
    return [
        {"name": one["name"]} | {key: found.get(one["name"], NEVER)[key] for key in ("state", "exit_code")}
        for one in known
    ]


def start(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Start a launcher; of a started one it succeeds.

    Raises NotFound, WorkspaceNotRunning, and ExitedAtOnce for one that exits within
    LAUNCHER_WATCH_MS with an exit code other than 0.
    """
    with _changing(caller, ref, name, WORKSPACE_LAUNCHER_START) as (workspace, launcher):
        reply = _ask_start(caller, workspace, launcher, LAUNCHER_WATCH_MS)
        state = _checked(reply)
        _note(workspace, name, state)
        if state["state"] == EXITED and state["exit_code"] != 0:
            hint = launcher_log(workspace.name, name)
            raise ends.exited(name, state["exit_code"], ends.last_lines(reply), hint)
    token = None
    if state["state"] == STARTED:
        with contextlib.suppress(SvcError):  # it has been started all the same
            token = launcher_tokens.find(caller, workspace, launcher)
    return _record(workspace, launcher, state, token)


def stop(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Stop a launcher and all its processes: TERM, then KILL. Of a stopped one it succeeds.

    So it does in a workspace that does not run, where every launcher has ended.
    """
    try:
        return _stop(caller, ref, name)
    except WorkspaceNotRunning:
        if states.find_own(caller, ref).status not in ("stopped", "failed"):
            raise
        found: dict[str, Any] = next(one for one in listing(caller, ref)["items"] if one["name"] == name)
        return found


def _stop(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    with _changing(caller, ref, name, WORKSPACE_LAUNCHER_STOP) as (workspace, launcher):
        arguments = {"id": workspace.id, "name": name, "grace_s": STOP_GRACE_S}
        state = _checked(caller.ask("launcher.stop", arguments, timeout_s=STOP_GRACE_S + CALL_LAUNCHER_S))
        _note(workspace, name, state)
    return _record(workspace, launcher, state)


@contextmanager
def _changing(caller: Caller, ref: str, name: str, action: Action) -> Iterator[tuple[Workspace, Launcher]]:
    """A call about a launcher of the caller's own running workspace, audited as `action`."""
    workspace = states.find_own(caller, ref, action)
    launcher = get(workspace, name)
    calls.require_running(caller, workspace)
    idle.touch(workspace.id)
    with audit.audited(caller, action, workspace.id, launcher=name), calls.expect_running(caller, workspace):
        yield workspace, launcher


def autostart(caller: Caller, workspace: Workspace) -> dict[str, Any]:
    """After a start: start the launchers with `autostart`. Never raises: a failure is logged.

    An agent that does not reply is waited for once, not for each launcher. Waits at most START_WATCH_MS
    for those that somebody has started, and returns the ones that have failed by then, as
    `launchers_failed`: {name, exit_code, output} each; and as `launchers_not_listening` those that run, and
    on whose port nothing listens: {name, container_port} each.
    """
    silent = False
    begun: list[Launcher] = []
    for launcher in _of(workspace):
        if not launcher["autostart"] or silent:
            continue
        outcome = "ok"
        try:
            _note(workspace, launcher["name"], _checked(_ask_start(caller, workspace, launcher, watch_ms=0)))
            begun.append(launcher)
        except SvcError as error:
            outcome = error.code
            silent = isinstance(error, untrusted.SILENT)
            facts = {"workspace": workspace.id, "launcher": launcher["name"], "code": outcome}
            log("domain", "a launcher was not started", "warning", rid=caller.rid, **facts)
        try:
            detail = {"launcher": launcher["name"], "autostart": True}
            audit.add(caller, WORKSPACE_LAUNCHER_START, workspace.id, outcome, **detail)
        except SvcError as error:  # the disk of the database is full
            log("domain", "an outcome could not be written", "error", rid=caller.rid, code=error.code)
    if silent or caller.kind == "worker":  # to whom nobody listens
        return NONE_BEGUN
    try:
        return _watch(caller, workspace, begun)
    except SvcError as error:
        facts = {"workspace": workspace.id, "code": error.code}
        log("domain", "launchers were not watched", "warning", rid=caller.rid, **facts)
        return NONE_BEGUN


def _watch(caller: Caller, workspace: Workspace, begun: list[Launcher]) -> dict[str, Any]:
    """The launchers that fail in their first moments, or do not listen; an exit code of 0 is no failure."""
    if not begun:
        return NONE_BEGUN
    served = {one["name"]: _served(workspace, one) for one in begun}
    rows = [{"name": name, "port": port} for name, port in served.items()]
    arguments = {"id": workspace.id, "launchers": rows, "watch_ms": START_WATCH_MS}
    reply = caller.ask("launcher.watch", arguments)
    names = set(served)
    failed, deaf = [], []
    for row in untrusted.get_rows(reply, "launchers", KNOWN_MAX):
        name, state = untrusted.get_text(row, "name", 63), _checked(row)
        if name in names and state["state"] == EXITED:
            names.discard(name)
            with write():
                if any((run.workspace_id, run.name) == (workspace.id, name) for run in started_runs()):
                    _note(workspace, name, state)  # else the worker has
            if state["exit_code"] != 0:
                failed.append({"name": name, "exit_code": state["exit_code"], "output": ends.last_lines(row)})
        elif name in names and state["state"] == STARTED and row.get("listens") is False:
            names.discard(name)
            deaf.append({"name": name, "container_port": served[name]})
    return {"launchers_failed": failed, "launchers_not_listening": deaf}


def _note(workspace: Workspace, name: str, state: Mapping[str, Any]) -> None:
    """Write the event of a start or stop; from a start on, the worker waits for its end."""
    _add_event(workspace.id, workspace.owner_id, name, state)
    if state["state"] == STARTED:
        operations.wake()


def _add_event(workspace_id: str, owner_id: int, name: str, state: Mapping[str, Any]) -> None:
    subject = "launcher", f"{workspace_id}/{name}", name
    data = {"workspace_id": workspace_id, "state": state["state"], "exit_code": state["exit_code"]}
    events.add(EVENT, owner_id, subject, data)


# --- ends that nobody asked for, which the worker notices -----------------------------------


class Run(NamedTuple):
    """A launcher that was started in a running workspace, and that nothing has ended since, by the events."""

    event_id: int
    workspace_id: str
    owner_id: int
    owner: str
    name: str


_STARTED = (
    "SELECT e.id, w.id, w.owner_id, u.name, e.subject_name"
    " FROM workspaces w JOIN users u ON u.id = w.owner_id AND u.uid IS NOT NULL"
    " JOIN template_revisions r ON r.template_id = w.template_id AND r.revision = w.template_revision"
    f" JOIN json_each({SPEC}, '$.launchers') l ON l.type = 'object'"
    # The newest of each, by the index: somebody may have started and stopped it ten thousand times.
    f" JOIN events e ON e.id = (SELECT id FROM events WHERE type = '{EVENT}' AND subject_id ="
    " w.id || '/' || json_extract(l.value, '$.name') ORDER BY at DESC, id DESC LIMIT 1)"
    " WHERE w.status = 'running' AND w.status <> 'stopped'"  # the words of an index
    " AND e.at >= w.started_at AND json_extract(e.data_json, '$.state') = ?"
)


def started_runs() -> list[Run]:
    """The launchers of all running workspaces that run as far as the service knows."""
    return [Run(*row) for row in database.execute_sql(_STARTED, (STARTED,))]


def note_end(caller: Caller, run: Run) -> bool:
    """Ask for the state of a launcher whose process has ended; write event and audit row of its end.

    False if it is started, still or again. Raises what an agent raises.
    """
    reply = caller.ask("launcher.list", {"id": run.workspace_id})
    rows = untrusted.get_rows(reply, "launchers", KNOWN_MAX)
    state = next((_checked(row) for row in rows if untrusted.get_text(row, "name", 63) == run.name), NEVER)
    if state["state"] == STARTED:
        return False
    with write():
        if run not in started_runs():
            return True  # somebody has stopped it, or the workspace, and has said so
        _add_event(run.workspace_id, run.owner_id, run.name, state)
    if state["state"] == EXITED:
        detail = {"launcher": run.name, "exit_code": state["exit_code"]}
        audit.add(caller, WORKSPACE_LAUNCHER_END, run.workspace_id, EXITED, **detail)
    return True


# --- the template's document --------------------------------------------------------------


def _of(workspace: Workspace) -> list[Launcher]:
    found: list[Launcher] = workspace.template.spec["launchers"]
    return found


def get(workspace: Workspace, name: str) -> Launcher:
    """The workspace's launcher of that name; raises NotFound."""
    found = next((one for one in _of(workspace) if one["name"] == name), None)
    if found is None:
        raise NotFound(f"{workspace.name} has no launcher {name}", hint=f"svc ws launchers {workspace.name}")
    return found


def _port(workspace: Workspace, launcher: Launcher) -> ports.Port | None:
    """The port that the launcher serves; None if it has none or that was removed."""
    rows = ports.rows_of(workspace.id) if launcher["port"] else []
    return next((row for row in rows if row.name == launcher["port"]), None)


def _served(workspace: Workspace, launcher: Launcher) -> int | None:
    """The container port that it serves: of the port's row, otherwise of the template."""
    port = _port(workspace, launcher)
    if port:
        return port.container_port
    of_template = {one["name"]: one.get("container_port") for one in workspace.template.spec["ports"]}
    return of_template.get(launcher["port"])


def _record(
    workspace: Workspace, launcher: Launcher, state: Mapping[str, Any], token: str | None = None
) -> dict[str, Any]:
    port = _port(workspace, launcher)
    record = port.record(workspace, None) if port else {}
    return {
        **{key: launcher[key] for key in ("name", "title", "port", "autostart")},
        **state,
        **{key: record.get(key) for key in ("kind", "host_port", "url", "connect", "ssh")},
        "token": token,
        "link": launcher_tokens.link(launcher, record.get("url"), token),
    }


# --- the shim -------------------------------------------------------------------------


def _ask_start(caller: Caller, workspace: Workspace, launcher: Launcher, watch_ms: int) -> dict[str, Any]:
    """The agent's untrusted reply: its state after watch_ms, or when it has exited."""
    port = _served(workspace, launcher)
    env = {} if port is None else {PORT_VARIABLE: str(port)}
    env |= {pair["name"]: pair["value"] for pair in launcher["env"]}
    arguments = {"id": workspace.id, "name": launcher["name"], "command": launcher["command"], "env": env}
    return caller.ask("launcher.start", arguments | {"watch_ms": watch_ms})


def _ask_states(caller: Caller, workspace: Workspace) -> dict[str, Mapping[str, Any]]:
    """The state of each launcher that the shim has started, by name."""
    try:
        reply = caller.ask("launcher.list", {"id": workspace.id})
    except NotFound:
        return {}
    rows = untrusted.get_rows(reply, "launchers", KNOWN_MAX)
    return {untrusted.get_text(row, "name", 63): _checked(row) for row in rows}


def _checked(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "state": untrusted.get_choice(reply, "state", STATES),
        "exit_code": untrusted.find_number(reply, "exit_code"),
        "started_at": untrusted.get_moment(reply, "started_at"),
        "finished_at": untrusted.get_moment(reply, "finished_at"),
    }
