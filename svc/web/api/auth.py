"""Sessions of browsers: logins on the TLS listener only, "rejected on the host-local socket".

One's own sessions are listed and ended on both: whoever lost a browser has the host.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, current_app, g, request

from svc.actions.access import NO_TOKENS, SESSION_ONLY
from svc.actions.table import AUTH_LOGIN, AUTH_LOGOUT, AUTH_SESSION_END
from svc.domain import events
from svc.domain.accounts import browsers, logins, sessions, users
from svc.domain.accounts.users import Account
from svc.domain.principal import Caller
from svc.domain.templates import attention
from svc.errors import PatNotAllowed
from svc.web import outputs
from svc.web.access import action, route
from svc.web.callers import credentials
from svc.web.schemas.auth import (
    SESSIONS,
    Credentials,
    EndedSessions,
    LoginAnswer,
    Nothing,
    SessionAnswer,
)
from svc.web.schemas.pages import ListQuery

blueprint = Blueprint("auth", __name__)


@action(
    blueprint, AUTH_LOGIN,
    body=Credentials(), answer=LoginAnswer(),
)  # fmt: skip
def log_in(_caller: Caller | None, body: dict[str, Any]) -> Response:
    """Log in with the service password; returns a cookie, and a secret to send with each request."""
    if "Authorization" in request.headers:
        raise PatNotAllowed(
            "a login cannot carry another credential", hint="send it without the Authorization header"
        )
    login = logins.log_in(
        body["username"],
        body["password"],
        address=credentials.address_of(request.environ),
        client=credentials.client_of(request.environ),
        helper=current_app.extensions["svc"]["helper"],
        rid=g.rid,
        browser=browsers.name_of(request.headers.get("User-Agent", "")),
    )
    record = {"session_secret": login.secrets.header, "session": login.session, "user": _user(login.user)}
    return credentials.set_cookie(outputs.response(record, 200), login.secrets.cookie)


@action(blueprint, AUTH_LOGOUT, body=Nothing(), status=204)
def log_out(caller: Caller, body: dict[str, Any]) -> Response:
    """End the current session."""
    logins.log_out(caller)
    return credentials.delete_cookie(outputs.response(None, 204))


@route(blueprint, "GET", "/auth/session", SESSION_ONLY, answer=SessionAnswer())
def session(caller: Caller) -> dict[str, Any]:
    """The current session, how much awaits its user's attention, and where a page begins to follow events."""
    record = {"session": sessions.get(caller.credential), "user": _user(users.get(caller.name))}
    return record | {"attention": attention.counts(caller), "events_after": events.newest_before()}


@route(blueprint, "GET", "/auth/sessions", NO_TOKENS, query=ListQuery(), answer=SESSIONS)
def list_sessions(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's own sessions, the last used first."""
    return sessions.page_of(caller, query["page"])


@route(blueprint, "DELETE", "/auth/sessions", NO_TOKENS, answer=EndedSessions())
def end_other_sessions(caller: Caller) -> dict[str, Any]:
    """End the caller's sessions except the one that sends this request."""
    return {"ended": sessions.end_others(caller)}


@action(blueprint, AUTH_SESSION_END, status=204)
def end_session(caller: Caller, ref: str) -> None:
    """End one of the caller's sessions; its next request is refused."""
    sessions.end_own(caller, ref)


def _user(user: Account) -> dict[str, Any]:
    return {"name": user.name, "display_name": user.display_name, "superuser": bool(user.superuser)}
