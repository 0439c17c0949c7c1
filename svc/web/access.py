"""Who may what: every route states its listeners and roles here, or the app does not start.

`route` registers a view with its rule, its input and its output; `reserve` does
the same for an endpoint of a later release. Decisions are made by endpoint,
never by the text of a URL, so that no spelling of a path gets round one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from flask import Blueprint, Flask, Response, g, request
from marshmallow import Schema

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

UNIX, TLS = "unix", "tls"

# Who may call: anybody, any account, any account but root, administrators.
ANYONE, ACCOUNT, MEMBER, ADMIN = "anyone", "account", "member", "admin"


class Access(NamedTuple):
    """One route's rule."""

    who: str
    listeners: tuple[str, ...] = (UNIX, TLS)
    pat: bool = False  # personal access tokens reach it too
    owner: bool = False  # takes ?owner=, with which root may call it
    stream: bool = False  # `svc api` cannot show it
    credential: bool = False  # makes a credential, which `svc api` never does


class Route(NamedTuple):
    """What is known of one endpoint: the rule, the schemas and the answer's status."""

    access: Access
    body: Schema | None
    query: Schema | None
    answer: Schema | None
    status: int
    location: str
    takes: str = ""  # the media type of a body that is a file
    gives: str = ""  # the media type of an answer that is one


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
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a view that takes (caller, **path, body=, query=) and returns what is shown.

    `location` is the Location header's pattern, filled from the record. A body
    that is a file the view takes itself, by svc.web.uploads.
    """
    known = Route(access, body, query, answer, status, location, takes, gives)

    def register(view: Callable[..., Any]) -> Callable[..., Any]:
        def serve(**arguments: Any) -> Response:
            if query is None:
                inputs.refuse_query()
            else:
                arguments["query"] = inputs.query(query)
            if body is not None:
                arguments["body"] = inputs.body(body)
            return outputs.shown(view(g.caller, **arguments), status, location)

        serve.__doc__ = view.__doc__
        serve.route = known  # type: ignore[attr-defined]  # read by rule_of
        blueprint.add_url_rule(path, view.__name__, serve, methods=[method], provide_automatic_options=False)
        return view

    return register


def reserve(blueprint: Blueprint, method: str, path: str, access: Access, summary: str) -> None:
    """Register an endpoint of a later release: its rule holds today, then it answers 501."""

    def view(_caller: Caller | None, **_arguments: Any) -> None:
        raise NotAvailable(f"{summary} comes with a later release", hint="svc api GET /api/version")

    words = [word.strip("<>").partition(":")[2] or word.strip("<>") for word in path.strip("/").split("/")]
    view.__name__ = "_".join([method.lower(), *words]).replace("-", "_")
    view.__doc__ = f"{summary}. Not in this release."
    route(blueprint, method, path, access, query=inputs.ANYTHING, status=501)(view)


def routes_of(app: Flask) -> dict[str, Route]:
    """The routes of an app by endpoint; raises RuntimeError for one without a rule."""
    found: dict[str, Route] = {}
    for rule in app.url_map.iter_rules():
        known = getattr(app.view_functions.get(rule.endpoint), "route", None)
        if not isinstance(known, Route):
            raise RuntimeError(f"{rule.rule} has no access rule")
        found[rule.endpoint] = known
    return found


def require(access: Access, listener: str, identify: Callable[[], Caller | None]) -> Caller | None:
    """Apply a rule to the request at hand; returns the caller, None where anybody may call."""
    if listener == UNIX and UNIX not in access.listeners:
        raise NotAllowedOnSocket(
            "logins and password changes are never taken on the host socket; it knows you already",
            hint="svc whoami",
        )
    if access.who == ANYONE:
        return None
    caller = identify()
    if caller is None:
        raise Unauthenticated("a valid credential is needed")
    if caller.kind == "pat" and not access.pat:
        raise PatNotAllowed("a personal access token does not reach this endpoint")
    if request.headers.get("X-Svc-Via") == "api":
        _require_plain(access)
    if listener not in access.listeners:
        raise SocketOnly("only the commands on the host itself reach this endpoint")
    if access.who == ADMIN and not caller.administers:
        raise AdminOnly("only an administrator may do this")
    if caller.uid == 0 and access.who == MEMBER and not (access.owner and _names_another(caller)):
        raise RootNotAllowed(
            "root administers; it has no workspaces, images or files", hint=_for_root(access)
        )
    return caller


def _require_plain(access: Access) -> None:
    """What `svc api` ("one peer-authenticated request", one printed answer) never gets."""
    if access.stream:
        raise StreamingNotSupported("svc api shows no streams", hint="svc ws --help")
    if access.credential:
        raise NotAllowedOnSocket("svc api never makes a credential", hint="svc token create --help")


def _names_another(caller: Caller) -> bool:
    return request.args.get("owner", caller.name) != caller.name


def _for_root(access: Access) -> str:
    """What root says instead: as the person whose things they are, or for that person by name."""
    if access.owner:
        return "svc ws list --owner NAME"
    words = {"images": "image list", "fs": "fs roots", "tokens": "token list"}
    return f"runuser -u NAME -- svc {words.get(request.blueprint or '', 'ws list')}"
