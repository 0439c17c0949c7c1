"""One-time tickets of requests: taken out of the query first, redeemed where the route is open to them.

A ticket stands alone: a cookie beside it, which browsers send with every link of our pages, is not
looked at. Nothing after `take` sees it: neither the log nor the audit nor the query's cache.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

from werkzeug.exceptions import HTTPException
from werkzeug.routing import MapAdapter, RequestRedirect

from svc.domain.accounts import sessions, tickets, tokens
from svc.domain.accounts.tickets import Holder
from svc.domain.principal import Caller
from svc.errors import InvalidRequest, SvcError, Unauthenticated
from svc.helper.helper import Helper
from svc.web.callers import credentials
from svc.web.schemas.loading import refusal

NAME = "ticket"
KEY = "svc.ticket"  # of the environ
UNBOUND = ("cols", "rows")  # of a page's window, which may change meanwhile
URL_MAX = 16 * 1024
_SLASHES = re.compile("/{2,}")
_PREFIX = "/api/"

Identify = Callable[[], Caller | None]


def take(environ: dict[str, Any]) -> None:
    """Move the tickets of a query into the environ's `svc.ticket`."""
    query = environ.get("QUERY_STRING", "")
    if NAME not in unquote_plus(query):
        return
    rest: list[str] = []
    taken: list[str] = []
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if unquote_plus(name) == NAME:
            taken.append(unquote_plus(value))
        else:
            rest.append(pair)
    environ["QUERY_STRING"] = "&".join(rest)
    environ.pop("RAW_URI", None)
    environ[KEY] = taken


def taken_from(environ: Mapping[str, Any], *, open_to_tickets: bool) -> str | None:
    """The ticket of a request, None without one; raises ValidationFailed for several, or for one in vain."""
    taken = environ.get(KEY)
    if not taken:
        return None
    if not open_to_tickets:
        raise refusal([{"field": NAME, "code": "unknown_key", "message": "Unknown field."}])
    if len(taken) > 1:
        raise refusal([{"field": NAME, "code": "twice", "message": "given more than once"}])
    return str(taken[0])


def subject_of(arguments: Mapping[str, Any], query: str) -> str:
    """What a ticket opens, as text: the names in the path, and the query in any order but for UNBOUND."""
    pairs = parse_qsl(query, keep_blank_values=True, errors="surrogateescape")
    pairs = [pair for pair in pairs if pair[0] not in UNBOUND]
    return json.dumps([dict(arguments), sorted(pairs)], sort_keys=True)


def resolve(url: str, adapter: MapAdapter) -> tuple[str, str]:
    """The endpoint and the subject of a path with its query; raises ValidationFailed for no such path."""
    parts = urlsplit(url)
    plain = (
        url.isascii()
        and url.isprintable()
        and " " not in url
        and not (parts.scheme or parts.netloc or parts.fragment)
    )
    if not plain or len(url) > URL_MAX or not url.startswith(_PREFIX):
        raise no_such_url()
    path = _SLASHES.sub("/", unquote(parts.path)).rstrip("/")
    try:
        endpoint, arguments = adapter.match(path, "GET")
    except (HTTPException, RequestRedirect):
        raise no_such_url() from None
    return endpoint, subject_of(arguments, parts.query)


def no_such_url() -> SvcError:
    """The error for a URL that no ticket opens."""
    message = "Not the path of a download, an archive, an export, a raw log or a terminal"
    return refusal([{"field": "url", "code": "invalid", "message": message}])


def holder_of(
    environ: Mapping[str, Any], helper: Helper, rid: str, ticket: str, purpose: str, subject: str
) -> Identify:
    """Identifies a request on the TLS listener by its ticket: redeems it the first time.

    Later, during a long answer, it is the session or token that must still be valid. Raises
    Unauthenticated (one text), InvalidRequest for a second credential, TooManyRequests.
    """
    redeemed: list[Holder] = []

    def identify() -> Caller:
        if not redeemed:
            redeemed.append(_redeem(environ, ticket, purpose, subject))
        holder = redeemed[0]
        if not _is_valid(holder):
            raise Unauthenticated("a valid credential is needed")
        return credentials.caller_of(holder.kind, (holder.credential, holder.user_id), environ, helper, rid)

    return identify


def peer_with(identify: Callable[[], Caller], ticket: str, purpose: str, subject: str) -> Identify:
    """Identifies a peer of the host socket that sent a ticket, which must be its own."""
    redeemed: list[Holder] = []

    def identify_peer() -> Caller:
        caller = identify()
        if not redeemed:
            holder = tickets.redeem(ticket, purpose, subject)
            if holder is None or (holder.kind, holder.user_id) != ("peer", caller.user_id):
                raise Unauthenticated("a valid credential is needed")
            redeemed.append(holder)
        return caller

    return identify_peer


def _redeem(environ: Mapping[str, Any], ticket: str, purpose: str, subject: str) -> Holder:
    if "HTTP_AUTHORIZATION" in environ:
        raise InvalidRequest("the request has two credentials: a ticket and Authorization")
    is_head = environ["REQUEST_METHOD"] != "GET"  # a HEAD before the GET does not use it up
    holder = None if is_head else tickets.redeem(ticket, purpose, subject)
    if holder is None or holder.kind == "peer":
        raise credentials.wrong_credential(environ)
    return holder


def _is_valid(holder: Holder) -> bool:
    is_valid = sessions.is_open if holder.kind == "session" else tokens.is_active
    return is_valid(holder.credential)
