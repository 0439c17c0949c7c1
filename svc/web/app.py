"""The Flask app of one listener: authentication, access rules and the headers of every response."""

from __future__ import annotations

import re
import secrets
import socket
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from flask import Flask, Response, current_app, g, request

from svc.actions.access import TLS, UNIX
from svc.db import acting
from svc.db.connect import close_database, database, open_database
from svc.domain import configuration, operations
from svc.domain.audit import audit
from svc.domain.principal import Caller
from svc.errors import InvalidRequest
from svc.helper.helper import Helper
from svc.host.ids import new_request_id
from svc.host.secret import read_secret
from svc.limits import BODY_MAX
from svc.log import Counted, log, shortened
from svc.settings import Settings
from svc.tls import serving
from svc.tls.public_chain import PublicChain
from svc.web import access, errors, inputs
from svc.web.api import BLUEPRINTS
from svc.web.callers import caller, credentials, host_header, tickets
from svc.web.gunicorn_worker import connection
from svc.web.pages import policy
from svc.web.pages import routes as pages
from svc.web.streaming import websocket
from svc.web.warming import Warming

METHOD_MAX = 20  # characters in a line of the log
STRANGERS_A_SECOND = 20  # lines about requests without a caller
HSTS_S = 365 * 24 * 3600  # browsers use https alone for this long (RFC 6797)

_SLASHES = re.compile("/{2,}")
_HEADERS = ("Authorization", "Content-Type", credentials.HEADER, credentials.BACKGROUND)
_CORS = {
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
    "Access-Control-Allow-Headers": ", ".join(_HEADERS),
    "Access-Control-Expose-Headers": "X-Request-Id, Location, Retry-After",
}


def begin(
    app: Flask, settings: Settings, helper: Helper, *, dev: bool, wake: Callable[[], None] | None = None
) -> None:
    """Give a built app its helper, its secret and the settings' database; leaves no connection open.

    Called in the listener's own process.
    """
    open_database(settings.db)
    close_database()
    database.notes_faults = True
    # --dev "uses an ephemeral JWT signing secret"; passwords in its database must outlive it all the same
    ephemeral = secrets.token_bytes(32) if dev else b""
    configuration.configure(settings, read_secret(settings.secret_file), ephemeral)
    if wake is not None:
        operations.wake = wake
    app.extensions["svc"] |= {"helper": helper, "warming": Warming()}


def build(settings: Settings, helper: Helper | None, *, listener: str, dev: bool) -> Flask:
    """The app of the listener `unix` or `tls` without its database: routes, rules, handlers, pages.

    Without a helper in the app parent: what is built before the fork the processes have in common.
    """
    app = Flask("svc.web", static_folder=None)
    # One more than allowed: Werkzeug truncates a chunked body there, and inputs.py finds it too long.
    app.config.update(MAX_CONTENT_LENGTH=BODY_MAX + 1, PROPAGATE_EXCEPTIONS=False)
    app.url_map.merge_slashes = False  # no redirect: _canonical does it
    chain = None if dev else PublicChain(serving.certificate_paths(settings).chain)
    app.extensions["svc"] = {"settings": settings, "helper": helper, "chain": chain}
    for blueprint in BLUEPRINTS:
        app.register_blueprint(blueprint, url_prefix="/api")
    if listener == TLS:
        app.register_blueprint(pages.blueprint())
    errors.install(app, pages.nothing_here if listener == TLS else lambda: None)
    routes = access.routes_of(app)  # raises for a route without a rule
    app.before_request(partial(_admit, routes, listener, dev, host_header.allowed(settings.public_hosts)))
    strangers = Counted(listener, "request", STRANGERS_A_SECOND)
    app.after_request(partial(_finish, dev, settings.log_level in ("debug", "info"), strangers))
    app.wsgi_app = _canonical(app.wsgi_app)  # type: ignore[method-assign]  # Flask's own way of wrapping
    return app


def _canonical(wsgi: Callable[..., Any]) -> Callable[..., Any]:
    """Normalise each path to the one that is routed: no double and no trailing slash; take tickets out."""

    def call(environ: dict[str, Any], start_response: Any) -> Any:
        path = environ["PATH_INFO"]
        if "//" in path or path.endswith("/"):
            environ["PATH_INFO"] = _SLASHES.sub("/", path).rstrip("/") or "/"
        tickets.take(environ)
        websocket.take(environ)
        return wsgi(environ, start_response)

    return call


def _admit(
    routes: dict[str, access.Route], listener: str, dev: bool, names: frozenset[str]
) -> Response | None:
    """Before each request: its id, its listener, its Host header, the access rule of its endpoint."""
    environ = request.environ
    acting.end()
    g.rid = new_request_id()
    g.began = time.monotonic()
    g.caller = g.identified = g.route = None
    g.error_code = ""
    g.listener = caller.listener(environ)
    if g.listener != listener:
        raise RuntimeError(f"a {g.listener} connection on the {listener} listener")
    sock = connection(environ)
    if environ.get("SCRIPT_NAME"):
        raise InvalidRequest("the request has a mount point (SCRIPT_NAME); send the path without one")
    if listener == UNIX:
        caller.refuse_credentials(environ)
    else:
        environ[credentials.DEV] = dev
        host_header.require_known(environ.get("HTTP_HOST"), names, sock)
        if dev and request.method == "OPTIONS" and _dev_origin():
            return Response(status=204)
        credentials.require_same_site(environ)
    if request.routing_exception is not None:
        raise request.routing_exception
    route = g.route = routes[request.endpoint or ""]
    environ[credentials.STREAM] = route.access.stream
    if route.access.websocket and listener == TLS:
        credentials.require_own_page(environ)
    g.require = partial(access.require, route.access, listener, _identify(route, listener, sock))
    g.caller = g.require()
    if g.caller is not None:
        acting.begin(g.caller.name, audit.VIA[g.caller.kind])
    if route.reads_json(request.mimetype):
        request.max_content_length = inputs.body_max(route.body) + 1
        with access.rechecked():
            request.get_data()  # cached for the view
    return None


def _identify(route: access.Route, listener: str, sock: socket.socket) -> Callable[[], Caller | None]:
    """How the caller of the current request is identified, with a ticket where there is one."""
    helper: Helper = current_app.extensions["svc"]["helper"]
    environ, by_peer = request.environ, partial(caller.by_peer, sock, helper, g.rid)
    ticket = tickets.taken_from(environ, open_to_tickets=route.access.ticket)
    if ticket is None:
        return by_peer if listener == UNIX else partial(caller.by_credential, environ, helper, g.rid)
    purpose, subject = (
        request.endpoint or "",
        tickets.subject_of(request.view_args or {}, environ["QUERY_STRING"]),
    )
    if listener == UNIX:
        return tickets.peer_with(by_peer, ticket, purpose, subject)
    return tickets.holder_of(environ, helper, g.rid, ticket, purpose, subject)


def _finish(dev: bool, logs_requests: bool, strangers: Counted, response: Response) -> Response:
    """After each request: the headers of every response, and one log entry."""
    response.headers["X-Request-Id"] = g.rid
    response.headers.setdefault("Cache-Control", "no-store")
    response.headers["Referrer-Policy"] = "no-referrer"  # the URL of a page or link is nobody else's business
    response.headers["X-Content-Type-Options"] = "nosniff"
    if g.listener == TLS:
        for name, value in policy.OTHERS.items():
            response.headers.setdefault(name, value)
    if dev and g.listener == TLS:
        _allow_dev_origin(response)
    elif g.listener == TLS and not host_header.is_loopback(request.headers.get("Host", "")):
        # Holds for all ports of the name, hence not for localhost, where workspace ports speak plain HTTP.
        response.headers["Strict-Transport-Security"] = f"max-age={HSTS_S}"
    if logs_requests:
        _log_request(strangers, response)
    if g.listener == UNIX and g.caller and (warming := current_app.extensions["svc"].get("warming")):
        response.call_on_close(partial(warming.begin, g.caller))
    return response


def _log_request(strangers: Counted, response: Response) -> None:
    facts = {
        "rid": g.rid,
        "method": request.method[:METHOD_MAX],
        "path": shortened(request.path),  # without the query, which may be private
        "status": response.status_code,
        "code": g.error_code,
        "user": g.caller.name if g.caller else "",
        "ms": round((time.monotonic() - g.began) * 1000, 1),
    }
    if g.caller:
        log(g.listener, "request", **facts)
    else:
        strangers.write("info", **facts)


def _dev_origin() -> str:
    origin = request.headers.get("Origin", "")
    return origin if host_header.is_dev_origin(origin) else ""


def _allow_dev_origin(response: Response) -> None:
    """CORS headers, with --dev only and for exact loopback origins only; with cookies, for sessions."""
    response.headers["Vary"] = "Origin"
    if origin := _dev_origin():
        response.headers.update({"Access-Control-Allow-Origin": origin} | _CORS)
