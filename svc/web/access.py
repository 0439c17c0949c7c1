"""Access rules: every route declares its listeners and roles here; the app refuses to start otherwise.

`route` registers a view with its rule, its input and its output; `action` that of a row of
the table of actions; `reserve` an endpoint of a later release. Decisions are made by endpoint,
never by the text of a URL, so that no spelling of a path bypasses one.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from flask import Blueprint, Flask, Response, g, request
from marshmallow import Schema

from svc.actions.access import ADMIN, ANYONE, MEMBER, ONE_APP, UNIX, Access
from svc.actions.table import Action
from svc.domain.principal import Caller
from svc.errors import (
    AdminOnly,
    NotAllowedOnSocket,
    NotAvailable,
    PatNotAllowed,
    RootNotAllowed,
    SocketOnly,
    StreamingNotSupported,
    Unauthenticated,
)
from svc.web import inputs, outputs

SLOW_BODY_S = 0.1
ALWAYS_AUDITED = "fs."  # "Every `fs` operation is audited on the server", a refused one too


class Route(NamedTuple):
    """One endpoint: its rule, its schemas and the status of its answer."""

    access: Access
    body: Schema | None
    query: Schema | None
    answer: Schema | None
    status: int
    location: str
    takes: str = ""  # media type of a body that is a file
    gives: str = ""  # media type of an answer that is a file
    action: Action | None = None  # where every request is audited, also one that the view never sees
    version: Callable[[Any], str] | None = None  # of the record in the answer: its ETag
    if_match: bool = False  # takes If-Match

    def reads_json(self, media_type: str) -> bool:
        """Check whether a body of this type is read as JSON: a route may take a file instead."""
        return self.body is not None and (not self.takes or media_type != self.takes)


def route(
    blueprint: Blueprint,
    method: str,
    path: str,
    access: Access,
    *,
    body: Schema | None = None,
    query: Schema | None = None,
    answer: Schema | None = None,
    status: int = 200,
    location: str = "",
    takes: str = "",
    gives: str = "",
    action: Action | None = None,
    version: Callable[[Any], str] | None = None,
    if_match: bool = False,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a view that takes (caller, **path, body=, query=) and returns the content of the answer.

    `location` is the pattern of the Location header, filled from the record and the
    names in the request's path. A view reads a body that is a file itself, with svc.web.uploads;
    with both `body` and `takes`, `body` is None for a file. With `if_match` the view takes
    `expected=`: the versions of that header, None without one.
    """
    declared = Route(access, body, query, answer, status, location, takes, gives, action, version, if_match)

    def register(view: Callable[..., Any]) -> Callable[..., Any]:
        def serve(**arguments: Any) -> Response:
            path = dict(arguments)
            if query is None:
                inputs.refuse_query()
            else:
                arguments["query"] = inputs.query(query)
            if body is not None:
                is_json = declared.reads_json(request.mimetype)
                arguments["body"] = inputs.body(body) if is_json else None
            if if_match:
                arguments["expected"] = inputs.if_match()
            value = view(g.caller, **arguments)
            etag = f'"{version(value)}"' if version else ""
            response = outputs.response(value, status, location, **path)
            if etag:
                response.headers["ETag"] = etag
            return response

        serve.__doc__ = view.__doc__
        serve.route = declared  # type: ignore[attr-defined]  # read by routes_of
        blueprint.add_url_rule(path, view.__name__, serve, methods=[method], provide_automatic_options=False)
        return view

    return register


def action(blueprint: Blueprint, row: Action, **declared: Any) -> Callable[..., Any]:
    """Register the view of an action: method, path and access are the row's, the rest is as for route()."""
    if row.access is None:
        raise ValueError(f"{row} has no request")
    audited = row if row.startswith(ALWAYS_AUDITED) else None
    path = row.path.replace("{", "<").replace("}", ">")
    return route(blueprint, row.method, path, row.access, action=audited, **declared)


def reserve(blueprint: Blueprint, method: str, path: str, access: Access, summary: str) -> None:
    """Register an endpoint of a later release: its rule applies now, then it answers 501."""

    def view(_caller: Caller | None, **_arguments: Any) -> None:
        raise NotAvailable(f"{summary} is not in this release", hint="svc api GET /api/version")

    view.__name__ = "_".join([method.lower(), *re.findall(r"\w+", path)])
    view.__doc__ = f"{summary}. Not in this release."
    route(blueprint, method, path, access, query=inputs.ANYTHING, status=501)(view)


def routes_of(app: Flask) -> dict[str, Route]:
    """The routes of an app by endpoint; raises RuntimeError for one without a rule."""
    routes: dict[str, Route] = {}
    for rule in app.url_map.iter_rules():
        route = getattr(app.view_functions.get(rule.endpoint), "route", None)
        if not isinstance(route, Route):
            raise RuntimeError(f"{rule.rule} has no access rule")
        routes[rule.endpoint] = route
    return routes


def require(access: Access, listener: str, identify: Callable[[], Caller | None]) -> Caller | None:
    """Apply a rule to the current request; returns the caller, None where anyone may call."""
    if listener == UNIX and UNIX not in access.listeners:
        raise NotAllowedOnSocket(
            "this belongs to logins with a password; the host socket needs none, since it knows its caller",
            hint="svc whoami",
        )
    if access.who == ANYONE:
        return None
    caller = g.identified = identify()
    if caller is None:
        raise Unauthenticated("a valid credential is needed")
    if caller.kind == "pat" and not access.allows_token(caller.scopes):
        raise _no_token(access, caller.scopes)
    if request.headers.get("X-Svc-Via") == "api":
        _require_plain(access)
    if listener not in access.listeners:
        raise SocketOnly("this endpoint is open to commands on the host itself only")
    if access.who == ADMIN and not caller.administers:
        raise AdminOnly("only an administrator may do this")
    if caller.uid == 0 and access.who == MEMBER and not (access.owner and _names_another(caller)):
        raise RootNotAllowed(
            "root administers; it has no workspaces, images or files", hint=_for_root(access)
        )
    return caller


@contextmanager
def rechecked() -> Iterator[None]:
    """Receive a body in this block: after a slow one the access rule is applied again.

    The account may have been disabled, or the session ended, in the meantime.
    """
    began = time.monotonic()
    yield
    if time.monotonic() - began > SLOW_BODY_S:
        g.caller = g.require()


def _no_token(access: Access, scopes: frozenset[str]) -> PatNotAllowed:
    if any(scope.startswith(ONE_APP) for scope in scopes):
        hint = "svc token create --name NAME"
        return PatNotAllowed("this token opens one app, and nothing of the API", hint=hint)
    if not access.scope:
        return PatNotAllowed("this endpoint does not accept personal access tokens")
    return PatNotAllowed(
        f"this endpoint accepts only personal access tokens with the scope {access.scope}",
        hint=f"svc token create --name NAME --scope {access.scope}",
    )


def _require_plain(access: Access) -> None:
    """Refuse what `svc api` ("one peer-authenticated request", one printed answer) does not support."""
    if access.stream:
        raise StreamingNotSupported("svc api cannot print a stream", hint="svc ws --help")
    if access.credential:
        raise NotAllowedOnSocket("svc api never creates a credential", hint=access.credential)


def _names_another(caller: Caller) -> bool:
    if request.args.get("all") in ("true", "1"):
        return True
    return request.args.get("owner", caller.name) not in (caller.name, str(caller.uid))


def _for_root(access: Access) -> str:
    """The command for root instead: whose workspaces there are, or as one of these users."""
    if access.owner:
        return "svc ws list --all"
    commands = {"images": "image list", "fs": "fs roots", "tokens": "token list"}
    return f"sudo runuser -u NAME -- svc {commands.get(request.blueprint or '', 'ws list')}"
