"""The credentials of the TLS listener: a browser's session (cookie and header) or a bearer token.

Each looks for its own kind and says who it is; who may do what is decided in
svc.web.access. A request that brings both is understood as neither.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from flask import Response

from svc.domain.accounts import account_status, sessions, throttle, tokens, users
from svc.domain.principal import Asks, Caller
from svc.errors import CrossSite, InvalidRequest, TooManyRequests, Unauthenticated
from svc.limits import TOKEN_FAILURES_MAX
from svc.web import host_header
from svc.web.gunicorn_worker import connection

COOKIE = "__Host-svc"  # the prefix: browsers take it over HTTPS only, from this host only, for all paths
HEADER = "X-Svc-Session"
DEV = "svc.dev"  # our own key in the environ: with --dev, pages of loopback origins are ours too

_SAFE = ("GET", "HEAD", "OPTIONS")
# What a page of any origin may send without being asked first ("simple" requests); no page of ours does.
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")

TOKEN_WINDOW_S = 60.0
ADDRESSES_MAX = 4096  # more addresses with wrong tokens than that, and all counts begin anew


def by_session(environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller | None:
    """The caller of a session; None without our cookie.

    Raises InvalidRequest (two credentials, two cookies of our name),
    Unauthenticated (either secret wrong, ended), AccountDisabled, AccountIncomplete.
    """
    cookies = _cookies(environ.get("HTTP_COOKIE", ""))
    if not cookies:
        return None
    if len(cookies) > 1:
        raise InvalidRequest(f"the request has the cookie {COOKIE} more than once")
    if "HTTP_AUTHORIZATION" in environ:
        raise InvalidRequest("the request has two credentials: a session's cookie and Authorization")
    found = sessions.user_of(cookies[0], environ.get("HTTP_X_SVC_SESSION", ""))
    if found is None:
        raise _unauthenticated()
    return _caller("session", found, environ, helper, rid)


def by_token(environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller | None:
    """The caller of a personal access token; None without an Authorization header.

    Raises Unauthenticated (one text), TokenExpired, TooManyRequests (wrong tokens
    from this address), AccountDisabled, AccountIncomplete.
    """
    given = environ.get("HTTP_AUTHORIZATION")
    if given is None:
        return None
    address = address_of(environ)
    scheme, _, untrusted = given.partition(" ")
    if scheme.lower() != "bearer" or not tokens.well_formed(untrusted):
        raise _wrong_tokens.refusal(address)
    found = tokens.user_of(untrusted, address)
    if found is None:
        raise _wrong_tokens.refusal(address)
    return _caller("pat", found, environ, helper, rid)


def require_same_site(environ: Mapping[str, Any]) -> None:
    """Raise CrossSite when a browser says that another origin's page sent this, or sent it as a form.

    For whatever may change something: logins too, so that nobody is logged in
    as somebody else. A token is sent by no browser of its own accord.
    """
    if environ["REQUEST_METHOD"] in _SAFE or "HTTP_AUTHORIZATION" in environ:
        return
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        raise CrossSite(f"a body of type {kind} is what any page's form could send; send application/json")
    origin, site = environ.get("HTTP_ORIGIN"), environ.get("HTTP_SEC_FETCH_SITE")
    if environ.get(DEV) and origin is not None and host_header.is_dev_origin(origin):
        return
    ours = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"
    said_so = site == "same-origin" and origin != "null"
    if not (said_so if site is not None else origin in (None, ours)):
        raise CrossSite("the browser says that this comes from a page of another origin")


def address_of(environ: Mapping[str, Any]) -> str:
    """The client's address as the kernel gave it, IPv4 in its own form, no interface's name."""
    address = str(environ.get("REMOTE_ADDR", "")).partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address


def give_cookie(response: Response, value: str) -> None:
    """Send the session's cookie; it goes when the browser is closed."""
    response.set_cookie(COOKIE, value, path="/", secure=True, httponly=True, samesite="Strict")


def take_cookie(response: Response) -> None:
    """Have the browser forget the session's cookie."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")


def _cookies(header: str) -> list[str]:
    """The values of all cookies of our name, spelt exactly as we spell it."""
    pairs = (pair.strip(" \t").partition("=") for pair in header.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]


def _caller(kind: str, found: tuple[str, int], environ: Mapping[str, Any], helper: Asks, rid: str) -> Caller:
    credential, user_id = found
    account = users.find_by_id(user_id)
    if account is None:
        raise _unauthenticated()
    account_status.require(account, helper, rid)
    return Caller(
        kind=kind,
        user_id=account.id,
        name=account.name,
        uid=account.uid,
        superuser=bool(account.superuser) and kind == "session",  # a token "never performs administrator ..."
        rid=rid,
        address=address_of(environ),
        helper=helper,
        hangup_fd=connection(environ).fileno(),
        credential=credential,
    )


def _unauthenticated() -> Unauthenticated:
    return Unauthenticated("a valid credential is needed")


class _WrongTokens:
    """How many wrong tokens came from where in the last minute; in memory, of this listener alone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[str, tuple[float, int]] = {}  # address -> when its minute began, how many since

    def refusal(self, address: str) -> Unauthenticated | TooManyRequests:
        """Count one more; what to raise for it. Right tokens never come here."""
        now = time.monotonic()
        whose = throttle.network(address)
        with self.lock:
            if len(self.counts) >= ADDRESSES_MAX and whose not in self.counts:
                self.counts.clear()
            began, count = self.counts.get(whose, (now, 0))
            if now - began >= TOKEN_WINDOW_S:
                began, count = now, 0
            self.counts[whose] = began, count + 1
        if count < TOKEN_FAILURES_MAX:
            return _unauthenticated()
        wait_s = max(1, round(began + TOKEN_WINDOW_S - now))
        return TooManyRequests("too many wrong tokens from this address", retry_after_s=wait_s)


_wrong_tokens = _WrongTokens()
