"""Speaking to the listeners byte by byte, as whoever one likes."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import socket
import ssl
import time
from collections.abc import Iterator
from typing import NamedTuple

_libc = ctypes.CDLL(None, use_errno=True)
_SETRESUID = {"x86_64": 117, "aarch64": 147}[
    os.uname().machine
]  # the call itself: the library's is for all threads


class Answer(NamedTuple):
    """A status (0: hung up without one), the head and the body."""

    status: int
    head: str
    body: bytes

    @property
    def code(self) -> str:
        """The error's code, if it is one of the API's."""
        try:
            return str(json.loads(self.body)["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""


def connect(path: str, user: str) -> socket.socket:
    """A connection to the host socket as that Linux user."""
    sock = socket.socket(socket.AF_UNIX)
    sock.settimeout(30)
    with becoming(user):
        sock.connect(path)
    return sock


@contextlib.contextmanager
def becoming(user: str) -> Iterator[None]:
    """The block as that Linux user, whose are the sockets that it makes."""
    _become(pwd.getpwnam(user).pw_uid)
    try:
        yield
    finally:
        _become(0)


def _become(uid: int) -> None:
    """Be that user in this thread alone: what the others start meanwhile, they start as root."""
    if _libc.syscall(_SETRESUID, -1, uid, -1):
        raise OSError(ctypes.get_errno(), "setresuid")


def connect_tls(port: int, sock: socket.socket | None = None) -> ssl.SSLSocket:
    """A connection to the TLS listener, over a connected socket if there is one."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    sock = sock or socket.create_connection(("127.0.0.1", port), timeout=30)
    return context.wrap_socket(sock, server_hostname="localhost")


def ask(sock: socket.socket, request: bytes) -> Answer:
    """Send the bytes, read until the end; closes the connection."""
    with sock:
        with contextlib.suppress(OSError):  # refused before it was read whole
            sock.sendall(request)
        data = b""
        with contextlib.suppress(OSError):
            while part := sock.recv(65536):
                data += part
                if whole(data):
                    break
    head, _, body = data.partition(b"\r\n\r\n")
    arguments = head.split(b" ", 2)
    status = int(arguments[1]) if len(arguments) > 1 and arguments[1].isdigit() else 0
    return Answer(status, head.decode("latin-1"), body)


def whole(data: bytes) -> bool:
    """Whether there is an answer with a length, and all of it."""
    head, end, body = data.partition(b"\r\n\r\n")
    lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
    return bool(end and lengths and len(body) >= int(lengths[0].partition(b":")[2]))


def request(method: str, path: str, body: bytes = b"", *headers: str, host: str = "localhost") -> bytes:
    """A well-formed request with any more headers."""
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers, "Connection: close"]
    if body and not any(header.lower().startswith("content-type") for header in headers):
        lines.append("Content-Type: application/json")
    if body or method != "GET":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def gone_within(sock: socket.socket, seconds: float, *, drip: bytes = b"") -> bool:
    """Whether the far end drops the connection in time, while it is fed a byte each second."""
    until = time.monotonic() + seconds
    sock.settimeout(1)
    while time.monotonic() < until:
        try:
            if drip:
                sock.send(drip)
            if not sock.recv(65536):
                return True
        except TimeoutError:
            continue
        except OSError:
            return True
    return False
