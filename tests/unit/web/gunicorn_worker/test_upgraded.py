"""A connection that speaks another protocol in its thread: its head, then nothing more of the server's."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from svc.web.gunicorn_worker.upgraded import UpgradedResponse


def test_the_head_and_then_the_other_protocol() -> None:
    ours, theirs = socket.socketpair()
    seen: list[Any] = []

    def serve(sock: socket.socket, early: bytes) -> None:
        seen.append((sock.getblocking(), early))
        sock.sendall(b"other")

    response = UpgradedResponse({"Upgrade": "websocket", "Connection": "Upgrade"}, serve)
    response.headers["X-Request-Id"] = "req-1"  # as the app does after the view
    response.call_on_close(lambda: seen.append("closed"))
    environ = {
        "REQUEST_METHOD": "GET", "wsgi.url_scheme": "http", "SERVER_NAME": "localhost", "SERVER_PORT": "1",
        "wsgi.input": None, "gunicorn.socket": theirs,
    }  # fmt: skip
    body = response(environ, lambda *_arguments: seen.append("started"))
    with ours, theirs:
        with pytest.raises(ConnectionResetError):  # which makes the server close the connection
            next(iter(body))
        body.close()  # type: ignore[attr-defined]  # as gunicorn does
        received = ours.recv(65536)
    assert received.startswith(b"HTTP/1.1 101 SWITCHING PROTOCOLS\r\n")
    assert b"\r\nX-Request-Id: req-1\r\n" in received
    assert received.endswith(b"\r\n\r\nother")
    assert b"Content-" not in received
    assert seen == ["started", (False, b""), "closed"]
