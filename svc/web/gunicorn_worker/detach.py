"""Detach a connection from the server: after the response's head it belongs to a stream.

A view authenticates and checks access in a thread of the server, as for every request, and
returns a DetachedResponse. The thread sends nothing; the worker gives the connection to the
stream, which sends the head and all that follows without a thread of its own.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from email.utils import formatdate
from typing import Any, Protocol

from flask import Response

PART = 65536


class Stream(Protocol):
    """What a connection is given to; see svc.web.streaming.stream."""

    def begin(self, sock: socket.socket, head: bytes, received: bytes, at_end: Callable[[], object]) -> None:
        """Take a non-blocking connection, and what came after the request; `at_end` follows its close."""

    def cancel(self) -> None:
        """Release what the stream holds, instead of begin()."""


class Detached(Exception):
    """Raised through the server by the response of a stream."""

    def __init__(self, stream: Stream, head: bytes) -> None:
        super().__init__("the connection belongs to a stream")
        self.stream, self.head = stream, head


class DetachedResponse(Response):
    """The response of a stream; status, headers and cookies as any other's."""

    def __init__(self, stream: Stream, status: int, headers: dict[str, str], media_type: str) -> None:
        super().__init__(iter(()), status, headers)
        if media_type:
            self.content_type = media_type
        else:
            del self.headers["Content-Type"]
        self.live = stream

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Raise Detached; to a test client, which has no connection, return the stream as a body."""
        _, status, headers = self.get_wsgi_response(environ)
        if getattr(_thread, "detaches", False):
            raise Detached(self.live, head_of(status, headers))
        start_response(status, headers)
        return _Body(self.live)


_thread = threading.local()


@contextmanager
def allowed() -> Iterator[None]:
    """Serve a request whose response may raise Detached, in this thread."""
    _thread.detaches = True
    try:
        yield
    finally:
        _thread.detaches = False


def head_of(status: str, headers: list[tuple[str, str]]) -> bytes:
    """The head; the end of the connection is the end of the body, unless the protocol is another's."""
    lines = [f"HTTP/1.1 {status}", f"Date: {formatdate(usegmt=True)}"]
    if not any(name.lower() == "connection" for name, _ in headers):
        lines.append("Connection: close")
    lines += [f"{name}: {value}" for name, value in headers]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


class _Body:
    """The stream as a body, for a test client."""

    def __init__(self, stream: Stream) -> None:
        self.ours, theirs = socket.socketpair()
        theirs.setblocking(False)
        stream.begin(theirs, b"", b"", lambda: None)

    def __iter__(self) -> Iterator[bytes]:
        while part := self.ours.recv(PART):
            yield part

    def close(self) -> None:
        """Hang up, as a client does."""
        self.ours.close()
