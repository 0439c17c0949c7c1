"""The host names and origins that the TLS listener accepts (DNS rebinding, CORS).

Names are compared whole, never by prefix or pattern.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable

from svc.errors import UnknownHost
from svc.tls import host_names

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_ORIGIN = re.compile(r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")


def allowed(public_hosts: Iterable[str]) -> frozenset[str]:
    """The names that a Host header may have: SVC_PUBLIC_HOSTS, otherwise the host's own; loopback always."""
    return frozenset([*(_bracketed(name) for name in host_names.of_service(public_hosts)), *LOOPBACK])


def require_known(host: str | None, names: frozenset[str], sock: socket.socket) -> None:
    """Raise UnknownHost unless the Host header names this service.

    The local address of the connection always does: no foreign DNS can return it as a name.
    """
    match = _HOST.fullmatch(host or "")
    if match and (match[1].lower() in names or match[1].lower() == _bracketed(sock.getsockname()[0])):
        return
    raise UnknownHost("the Host header does not name this service; add the name to SVC_PUBLIC_HOSTS")


def is_loopback(host: str) -> bool:
    """Whether a Host header names the loopback interface: with a browser, that of the browser's host."""
    match = _HOST.fullmatch(host)
    name = match[1].lower() if match else ""
    return name in LOOPBACK or name.endswith(".localhost")


def is_dev_origin(origin: str) -> bool:
    """Whether the origin is a page of this machine, which --dev lets read answers."""
    return _ORIGIN.fullmatch(origin) is not None


def _bracketed(name: str) -> str:
    name = name.partition("%")[0].removeprefix("::ffff:") if name.count(":") > 1 else name
    return f"[{name.strip('[]')}]" if ":" in name else name
