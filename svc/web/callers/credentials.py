"""The credentials of the TLS listener: a browser's session (cookie and header) or a bearer token.

They authenticate; svc.web.access authorizes. A request with both is refused.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from flask import Response

from svc.domain import addresses
from svc.domain.accounts import account_status, sessions, tokens, users
from svc.domain.principal import Caller
from svc.errors import CrossSite, InvalidRequest, TooManyRequests, Unauthenticated
from svc.helper.helper import Helper
from svc.limits import TOKEN_FAILURES_MAX
from svc.web.callers import host_header
from svc.web.gunicorn_worker import client, connection

COOKIE = "__Host-svc"  # the prefix: browsers accept it over HTTPS only, for this host, for all paths
HEADER = "X-Svc-Session"
BACKGROUND = "X-Svc-Background"  # "1" on reading requests that a page sends by itself: no use of the session
STREAM = "svc.stream"  # key of ours in the environ: the request opens a stream
DEV = "svc.dev"  # key of ours in the environ: with --dev, loopback origins are trusted too

_SAFE = ("GET", "HEAD", "OPTIONS")
# Sent by a page of any origin without a preflight ("simple" requests); our pages never do.
_FORMS = ("application/x-www-form-urlencoded", "multipart/form-data", "text/plain")

TOKEN_WINDOW_S = 60.0
ADDRESSES_MAX = 4096  # with wrong tokens; beyond it all counts restart


def by_session(environ: Mapping[str, Any], helper: Helper, rid: str) -> Caller | None:
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
    asked = environ.get("HTTP_X_SVC_BACKGROUND") == "1" and environ["REQUEST_METHOD"] in _SAFE
    background = asked or bool(environ.get(STREAM))  # an open page is not a person who uses it
    found = sessions.user_of(cookies[0], environ.get("HTTP_X_SVC_SESSION", ""), background=background)
    if found is None:
        raise _unauthenticated()
    return caller_of("session", found, environ, helper, rid)


def by_token(environ: Mapping[str, Any], helper: Helper, rid: str) -> Caller | None:
    """The caller of a personal access token; None without an Authorization header.

    Raises Unauthenticated (one text), TokenExpired, TooManyRequests (wrong tokens
    from this address), AccountDisabled, AccountIncomplete.
    """
    header = environ.get("HTTP_AUTHORIZATION")
    if header is None:
        return None
    address = address_of(environ)
    scheme, _, untrusted = header.partition(" ")
    well_formed = scheme.lower() == "bearer" and tokens.well_formed(untrusted)
    found = tokens.user_of(untrusted, address) if well_formed else None
    if found is None:
        raise wrong_credential(environ)
    return caller_of("pat", found, environ, helper, rid)


def caller_of(
    kind: str, found: tuple[str, int], environ: Mapping[str, Any], helper: Helper, rid: str
) -> Caller:
    """The caller of a credential (its id, and the id of its account) that was found to be valid.

    Raises Unauthenticated, AccountDisabled, AccountIncomplete.
    """
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
        client=client_of(environ),
        scopes=tokens.scopes_of(credential) if kind == "pat" else frozenset(),
    )


def wrong_credential(environ: Mapping[str, Any]) -> Unauthenticated | TooManyRequests:
    """The error for a wrong token or ticket, which is counted by client."""
    return wrong_token(client_of(environ))


def wrong_token(client: str) -> Unauthenticated | TooManyRequests:
    """The error for a wrong token of a client, which is counted."""
    return _wrong_tokens.refusal(client)


def require_same_site(environ: Mapping[str, Any]) -> None:
    """Raise CrossSite for a request that a page of another origin sent, or a form.

    For every method that may change something, logins included: a page must not
    log its visitor in as somebody else. Browsers never add a token by themselves.
    """
    if environ["REQUEST_METHOD"] in _SAFE or "HTTP_AUTHORIZATION" in environ:
        return
    kind = environ.get("CONTENT_TYPE", "").partition(";")[0].strip().lower()
    if kind in _FORMS:
        raise CrossSite(f"the body has type {kind}, which a form on any page can send; send application/json")
    origin, site = environ.get("HTTP_ORIGIN"), environ.get("HTTP_SEC_FETCH_SITE")
    if environ.get(DEV) and origin is not None and host_header.is_dev_origin(origin):
        return
    same_site = site == "same-origin" and origin != "null"
    if not (same_site if site is not None else origin in (None, _own_origin(environ))):
        raise CrossSite("the browser sent this request from a page of another origin")


def require_own_page(environ: Mapping[str, Any]) -> None:
    """Raise CrossSite for a WebSocket that no page of this very origin opens; token clients need no Origin.

    Browsers let any page open one to any host, with that host's cookies, and always send its Origin.
    The Host header has been checked before, so it names this service.
    """
    origin = environ.get("HTTP_ORIGIN")
    is_client = origin is None and "HTTP_AUTHORIZATION" in environ
    is_dev = bool(environ.get(DEV)) and origin is not None and host_header.is_dev_origin(origin)
    if not (is_client or is_dev or origin == _own_origin(environ)):
        raise CrossSite("a WebSocket is for pages of this service, and for clients with a token")


def _own_origin(environ: Mapping[str, Any]) -> str:
    return f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"


def address_of(environ: Mapping[str, Any]) -> str:
    """The client's address from the kernel, without an interface name; IPv4 never as IPv6."""
    address = str(environ.get("REMOTE_ADDR", "")).partition("%")[0]
    return address.removeprefix("::ffff:") if "." in address else address


def client_of(environ: Mapping[str, Any]) -> str:
    """Who the request counts as beside others: a user of this host, else whom its address stands for."""
    return client(environ) or addresses.client_of(address_of(environ))


def set_cookie(response: Response, value: str) -> Response:
    """Set the session cookie, which lasts until the browser closes."""
    response.set_cookie(COOKIE, value, path="/", secure=True, httponly=True, samesite="Strict")
    return response


def delete_cookie(response: Response) -> Response:
    """Delete the session cookie in the browser."""
    response.delete_cookie(COOKIE, path="/", secure=True, httponly=True, samesite="Strict")
    return response


def _cookies(header: str) -> list[str]:
    """The values of all cookies of exactly our name."""
    pairs = (pair.strip(" \t").partition("=") for pair in header.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]


def _unauthenticated() -> Unauthenticated:
    return Unauthenticated("a valid credential is needed")


class _WrongTokens:
    """Wrong tokens by client in the last minute; in memory, for this listener alone."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.counts: dict[str, tuple[float, int]] = {}  # client -> start of its minute, count

    def refusal(self, address: str) -> Unauthenticated | TooManyRequests:
        """Count one wrong token; returns the error to raise."""
        now = time.monotonic()
        network = addresses.client_of(address)
        with self.lock:
            if len(self.counts) >= ADDRESSES_MAX and network not in self.counts:
                self.counts.clear()
            began, count = self.counts.get(network, (now, 0))
            if now - began >= TOKEN_WINDOW_S:
                began, count = now, 0
            self.counts[network] = began, count + 1
        if count < TOKEN_FAILURES_MAX:
            return _unauthenticated()
        wait_s = max(1, round(began + TOKEN_WINDOW_S - now))
        return TooManyRequests("too many wrong tokens from this address", retry_after_s=wait_s)


_wrong_tokens = _WrongTokens()
