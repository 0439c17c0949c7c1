"""A connection that speaks another protocol after the response's head, in the thread of its request.

For what waits in a thread anyway; streams leave their thread (detach.py). The response's
iterator serves the connection and yields nothing, so that the server sends nothing either.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from flask import Response
from werkzeug.wsgi import ClosingIterator

from svc.web.gunicorn_worker import connection
from svc.web.gunicorn_worker.detach import head_of


class UpgradedResponse(Response):
    """Serves the connection with `serve(connection, what has come of it already)` after its head."""

    def __init__(self, headers: dict[str, str], serve: Callable[[Any, bytes], object]) -> None:
        super().__init__(iter(()), 101, headers)
        del self.headers["Content-Type"]
        self.serve = serve

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Begin with the first look at the iterator; the end of that closes the connection."""
        _, status, headers = self.get_wsgi_response(environ)
        start_response(status, headers)
        return ClosingIterator(self._served(environ, head_of(status, headers)), self.close)

    def _served(self, environ: dict[str, Any], head: bytes) -> Iterator[bytes]:
        sock: Any = connection(environ)
        reader = getattr(getattr(environ["wsgi.input"], "reader", None), "unreader", None)
        sock.sendall(head)
        sock.setblocking(False)
        self.serve(sock, reader.take_buffered() if reader else b"")
        # The server closes the connection, and sends nothing more.
        raise ConnectionResetError(errno.ECONNRESET, "the other protocol is over")
        yield b""
