"""The status of malformed HTTP, as gunicorn has it."""

from __future__ import annotations

import json
import ssl

import pytest
from gunicorn.http import errors as refused

from svc.web.gunicorn_worker.malformed import PlainHttp, message_of, response, status_of


def test_what_is_ours_and_what_is_the_clients() -> None:
    assert status_of(refused.InvalidResponseHeader("x")) == 500
    assert status_of(refused.ForbiddenProxyRequest("x")) == 403
    assert status_of(ssl.SSLError(1, "x")) == 403
    assert status_of(OSError()) == 500


COOKIES = b"\r\nCookie: jupyter=" + b"x" * 20_000
HEAD = b"GET / HTTP/1.1\r\nHost: lab.example:8888\r\nAccept: text/html,*/*" + COOKIES + b"\r\n\r\n"


def test_too_many_cookies_are_called_that() -> None:
    """Browsers send those of all programs of a host: one for each port of Jupyter."""
    message = message_of(refused.LimitRequestHeaders("x"), HEAD)
    assert message.startswith("the cookies of lab.example:8888 are 20016 bytes, at most 16380: ")
    assert message_of(refused.LimitRequestHeaders("x"), HEAD.replace(COOKIES, b"")) == ""
    page = response(431, "req-1", message, HEAD)
    assert b"Content-Type: text/html" in page
    assert b"<p>the cookies of lab.example:8888" in page
    plain = response(431, "req-1", message, HEAD.replace(b"text/html", b"application/json"))
    assert json.loads(plain.partition(b"\r\n\r\n")[2])["error"]["message"] == message


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("lab.example:8888", "this port speaks HTTPS: https://lab.example:8888/"),
        ("[::1]:8888", "this port speaks HTTPS: https://[::1]:8888/"),
        ("<script>", "this port speaks HTTPS"),
        ("a" * 300, "this port speaks HTTPS"),
    ],
)
def test_plain_http_is_told_the_address(host: str, message: str) -> None:
    head = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
    assert message_of(PlainHttp(), head) == message
    assert status_of(PlainHttp()) == 400
