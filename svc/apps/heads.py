"""Heads of requests and responses, written anew between a browser and a program of a workspace.

Fields are pairs of bytes, names in lower case, as h11 has them. What tells a program more than it may know,
or a browser more than a program may say, is taken out; what belongs to one connection is h11's to write.
With the host header `local` a program sees what it sees through `ssh -L`: its own address, in all fields that
name one. Only some of them would be worse than none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from svc.apps import cookies, credentials

Field = tuple[bytes, bytes]
Fields = Sequence[Field]

OF_CONNECTION = frozenset({
    b"connection", b"keep-alive", b"proxy-connection", b"proxy-authenticate", b"proxy-authorization",
    b"te", b"trailer", b"transfer-encoding", b"upgrade",
})  # fmt: skip
# The service's, or what a proxy says of the client: a program could believe it.
_OURS = re.compile(rb"x-svc-.*|svc-user|forwarded|x-forwarded(?:-.*)?|x-real-ip|expect")
# What would outlast the app, or reach beyond it: the browser keeps these for the host, or for more paths.
LASTING = frozenset({
    b"strict-transport-security", b"public-key-pins", b"public-key-pins-report-only", b"alt-svc",
    b"clear-site-data", b"service-worker-allowed", b"nel", b"report-to",
})  # fmt: skip
UNLESS_PRESENT = (
    (b"origin-agent-cluster", b"?1"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
WITH_ADDRESS = frozenset({b"location", b"content-location", b"access-control-allow-origin"})


class Target(NamedTuple):
    """A program, and the address at which the browser has it."""

    origin: str  # the app's, as the browser has it
    local: str  # "127.0.0.1:8888", inside
    scheme: str  # that the program speaks: http or https
    is_public: bool  # the program is shown the browser's address (host header `public`)


class Visitor(NamedTuple):
    """Who comes, as the program is told."""

    user: str
    address: str


def to_program(fields: Fields, target: Target, visitor: Visitor, *, upgrade: bool) -> list[Field]:
    """The fields of a request as the program gets them; an upgrade is one to a WebSocket."""
    named = _named_by_connection(fields)
    is_chunked = _is_chunked(fields)
    found: list[Field] = []
    for name, value in fields:
        if name in (b"host", b"content-length") or name in OF_CONNECTION or name in named or _is_ours(name):
            continue
        if name == b"cookie":
            value = cookies.to_program(value)
            if not value:
                continue
        elif name == b"authorization" and credentials.is_ours(value):
            continue
        elif not target.is_public and name in (b"origin", b"referer"):
            value = _moved(value, target.origin.encode(), _inside(target))
        found.append((name, value))
    host = target.origin.partition("://")[2] if target.is_public else target.local
    own: list[Field] = [(b"host", host.encode())]
    own += [(b"transfer-encoding", b"chunked")] if is_chunked else []
    own += [field for field in fields if field[0] == b"content-length" and not is_chunked]
    own += [(b"connection", b"upgrade"), (b"upgrade", b"websocket")] if upgrade else []
    own += [(b"svc-user", visitor.user.encode()), (b"x-forwarded-for", visitor.address.encode())]
    if target.is_public:
        scheme = target.origin.partition("://")[0]
        own += [(b"x-forwarded-host", host.encode()), (b"x-forwarded-proto", scheme.encode())]
    return [*own, *found]


def to_browser(fields: Fields, target: Target, *, upgrade: bool) -> list[Field]:
    """The fields of a response as the browser gets them; an upgrade is the answer 101 that was asked for."""
    named = _named_by_connection(fields)
    is_chunked = _is_chunked(fields)
    found: list[Field] = []
    for name, value in fields:
        if name in OF_CONNECTION or name in named or name in LASTING or _is_ours(name):
            continue
        if name == b"content-length" and is_chunked:
            continue
        if name == b"set-cookie":
            cookie = cookies.to_browser(value)
            if cookie is None:
                continue
            value = cookie
        elif not target.is_public and name in WITH_ADDRESS:
            value = _moved(value, _inside(target), target.origin.encode())
        found.append((name, value))
    if upgrade:
        found += [(b"connection", b"upgrade"), (b"upgrade", b"websocket")]
    present = {name for name, _ in found}
    return [*found, *(field for field in UNLESS_PRESENT if field[0] not in present)]


def _is_ours(name: bytes) -> bool:
    """Whether a field is the service's to say; CGI and WSGI take a low line for a hyphen."""
    return _OURS.fullmatch(name.replace(b"_", b"-")) is not None


def _is_chunked(fields: Fields) -> bool:
    """Whether the body says its own length, by which it was read: a length besides is a lie, or a trap."""
    return any(name == b"transfer-encoding" for name, _ in fields)


def _named_by_connection(fields: Fields) -> frozenset[bytes]:
    """The fields that are about one connection, since its Connection field says so."""
    texts: Iterable[bytes] = (value for name, value in fields if name == b"connection")
    return frozenset(each.strip().lower() for text in texts for each in text.split(b","))


def _inside(target: Target) -> bytes:
    return f"{target.scheme}://{target.local}".encode()


def _moved(value: bytes, origin: bytes, other: bytes) -> bytes:
    """An address below another origin; every other text as it is."""
    if not value.lower().startswith(origin):
        return value
    rest = value[len(origin) :]
    return other + rest if rest[:1] in (b"", b"/", b"?", b"#") else value
