"""The response of a stream: its head, and that the server's thread sends nothing."""

from __future__ import annotations

import pytest

from svc.web.gunicorn_worker import detach


class Nothing:
    """A stream that only notes that it begins."""

    def begin(self, sock: object, head: bytes, received: bytes, at_end: object) -> None:
        sock.sendall(b"body")  # type: ignore[attr-defined]  # a socket
        sock.close()  # type: ignore[attr-defined]  # a socket

    def cancel(self) -> None:
        pass


ENVIRON = {"REQUEST_METHOD": "GET", "wsgi.url_scheme": "http", "SERVER_NAME": "localhost", "SERVER_PORT": "1"}


def head_of(response: detach.DetachedResponse) -> list[bytes]:
    def start_response(*_arguments: object) -> None:
        pytest.fail("the server sends nothing")

    with detach.allowed(), pytest.raises(detach.Detached) as raised:
        response(dict(ENVIRON), start_response)
    assert raised.value.stream is response.live
    assert raised.value.head.endswith(b"\r\n\r\n")
    return raised.value.head.removesuffix(b"\r\n\r\n").split(b"\r\n")


def test_the_head_of_a_stream() -> None:
    response = detach.DetachedResponse(Nothing(), 200, {"X-Own": "yes"}, "text/event-stream")
    response.headers["X-Request-Id"] = "req-1"  # as the app does after the view
    status, date, connection, *rest = head_of(response)
    assert status == b"HTTP/1.1 200 OK"
    assert date.startswith(b"Date: ")
    assert connection == b"Connection: close"
    assert b"X-Own: yes" in rest
    assert b"X-Request-Id: req-1" in rest
    assert b"Content-Type: text/event-stream" in rest
    assert not [line for line in rest if line.lower().startswith((b"content-length", b"transfer-"))]


def test_the_head_of_another_protocol() -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade"}
    lines = head_of(detach.DetachedResponse(Nothing(), 101, headers, ""))
    assert lines[0] == b"HTTP/1.1 101 SWITCHING PROTOCOLS"
    assert lines.count(b"Connection: Upgrade") == 1
    assert not [line for line in lines if line.lower().startswith((b"content-", b"connection: close"))]


def test_a_test_client_reads_the_stream_as_a_body() -> None:
    started = []
    response = detach.DetachedResponse(Nothing(), 200, {}, "text/event-stream")
    body = response(dict(ENVIRON), lambda status, headers: started.append(status))
    assert b"".join(body) == b"body"
    assert started == ["200 OK"]
