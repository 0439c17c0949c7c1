"""Sessions of browsers: on the TLS listener only, "rejected on the host-local socket"."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, current_app, g, request

from svc.domain.accounts import logins, sessions, users
from svc.domain.accounts.users import Account
from svc.domain.principal import Caller
from svc.errors import PatNotAllowed
from svc.web import credentials, outputs
from svc.web.access import ACCOUNT, ANYONE, TLS, Access, route
from svc.web.schemas.auth import Credentials, LoginAnswer, Nothing, SessionAnswer

blueprint = Blueprint("auth", __name__)

SESSION = Access(ACCOUNT, listeners=(TLS,))


@route(
    blueprint, "POST", "/auth/login", Access(ANYONE, listeners=(TLS,)),
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
        helper=current_app.extensions["svc"]["helper"],
        rid=g.rid,
    )
    record = {"session_secret": login.secrets.header, "session": login.session, "user": _user(login.user)}
    return credentials.set_cookie(outputs.response(record, 200), login.secrets.cookie)


@route(blueprint, "POST", "/auth/logout", SESSION, body=Nothing(), status=204)
def log_out(caller: Caller, body: dict[str, Any]) -> Response:
    """End the current session."""
    logins.log_out(caller)
    return credentials.delete_cookie(outputs.response(None, 204))


@route(blueprint, "GET", "/auth/session", SESSION, answer=SessionAnswer())
def session(caller: Caller) -> dict[str, Any]:
    """The current session."""
    return {"session": sessions.get(caller.credential), "user": _user(users.get(caller.name))}


def _user(user: Account) -> dict[str, Any]:
    return {"name": user.name, "display_name": user.display_name, "superuser": bool(user.superuser)}
