"""Terminals of a workspace, and commands with a standard input: for the owner alone, over WebSockets."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

from flask import Blueprint, Response, copy_current_request_context, g, request

from svc.actions.access import ACCOUNT, OWNER_ONLY, Access
from svc.actions.table import TERMINAL_CLOSE, TERMINAL_OPEN
from svc.domain.accounts import tickets
from svc.domain.principal import Caller
from svc.domain.workspaces.live import terminals
from svc.web import piping
from svc.web.access import action, route
from svc.web.callers import tickets as links
from svc.web.gunicorn_worker.upgraded import UpgradedResponse
from svc.web.schemas.live.terminals import NewTerminal, TerminalOpen, TerminalPage, TerminalQuery
from svc.web.streaming import websocket
from svc.web.streaming.terminal import PROTOCOL, TerminalStream

blueprint = Blueprint("terminals", __name__)

VIEW = Access(ACCOUNT, pat=True, stream=True, ticket=True, websocket=True)
PIPED = Access(ACCOUNT, pat=True, stream=True, websocket=True)
VIEW_ENDPOINT = f"{blueprint.name}.view"


@route(blueprint, "GET", "/workspaces/<ref>/terminals", OWNER_ONLY, answer=TerminalPage())
def list_(caller: Caller, ref: str) -> dict[str, Any]:
    """The terminals of a workspace, those that ended lately too; none while it is stopped."""
    return terminals.listing(caller, ref)


@action(
    blueprint, TERMINAL_OPEN,
    body=TerminalOpen(), answer=NewTerminal(), status=201,
    location="/api/workspaces/{ref}/terminal?id={id}",
)  # fmt: skip
def open_(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Open a terminal, and get a one-time ticket for its WebSocket; it stays open without viewers.

    Over the host socket there is no ticket: its peer attaches without one.
    """
    record = terminals.open_(caller, ref, body["cols"], body["rows"], body.get("command"))
    ticket = None
    if caller.kind != "peer":
        subject = links.subject_of({"ref": ref}, f"id={record['id']}")
        ticket = tickets.issue(caller, VIEW_ENDPOINT, subject).secret
    return record | {"ticket": ticket}


@action(blueprint, TERMINAL_CLOSE, status=204)
def close(caller: Caller, ref: str, terminal: str) -> None:
    """Close a terminal: its program gets SIGHUP, and is killed if it stays."""
    terminals.close(caller, ref, terminal)


@route(blueprint, "GET", "/workspaces/<ref>/terminal", VIEW, query=TerminalQuery(), status=101)
def view(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """A WebSocket (`svc-terminal.1`) to the terminal `id`, or to a new one without: docs/terminals.md."""
    headers = websocket.accept(request.environ, PROTOCOL)
    cols, rows = query["cols"], query["rows"]
    with ExitStack() as held:
        if "id" in query:
            viewing = terminals.attached(caller, ref, query["id"], cols, rows)
        else:
            viewing = terminals.opened(caller, ref, cols, rows, query.get("command"))
        attached = held.enter_context(viewing)
        require = copy_current_request_context(g.require)
        return websocket.response(TerminalStream(caller, require, attached, held.pop_all()), headers)


@route(blueprint, "GET", "/workspaces/<ref>/exec/stream", PIPED, status=101)
def pipe(caller: Caller, ref: str) -> Response:
    """A WebSocket (`svc-exec.1`) to one command with a standard input: docs/terminals.md."""
    headers = websocket.accept(request.environ, piping.PROTOCOL)
    require = copy_current_request_context(g.require)
    return UpgradedResponse(headers, partial(piping.serve, caller, ref, require))
