"""The answer to malformed HTTP, which never reaches the app: the error body of every other error."""

from __future__ import annotations

import html
import http
import json
import re
import ssl

from gunicorn.http import errors as http_errors

from svc.errors import InvalidRequest, SvcError

LINES_A_SECOND = 5  # in the log; more are counted
FIELD_MAX = (
    16380  # bytes of a header; browsers send all cookies of a host, also those of programs on other ports
)
PAGE = '<!doctype html>\n<html lang="en"><title>svc</title><p>{}</p></html>\n'
_HOST = re.compile(rb"\r\nhost:[ \t]*([A-Za-z0-9.:\[\]-]{1,255})\r\n", re.IGNORECASE)
_COOKIES = re.compile(rb"\r\n(cookie:[^\r]*)", re.IGNORECASE)


STATUSES = (  # as gunicorn answers them itself
    (http_errors.InvalidResponseHeader, 500),
    (http_errors.InvalidResponseHeaderName, 500),
    (http_errors.ConfigurationProblem, 500),
    (http_errors.UnsupportedTransferCoding, 501),
    (http_errors.LimitRequestLine, 414),
    (http_errors.LimitRequestHeaders, 431),
    (http_errors.ExpectationFailed, 417),
    ((http_errors.ForbiddenProxyRequest, ssl.SSLError), 403),
    (http_errors.ParseException, 400),
)


class PlainHttp(http_errors.ParseException):
    """Plain HTTP on the port of the TLS listener."""


def status_of(error: BaseException) -> int:
    """The HTTP status for an exception of gunicorn's parser."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def response(status: int, rid: str, message: str = "", head: bytes = b"") -> bytes:
    """The whole response; a page for a browser that asked for one in `head`, else the error of the API."""
    error = (InvalidRequest if status < 500 else SvcError)(
        message or "the request is not well-formed HTTP/1.1"
    )
    body, media_type = json.dumps(error.body(rid)), "application/json"
    if message and b"text/html" in head:
        body, media_type = PAGE.format(html.escape(message)), "text/html; charset=utf-8"
    answer = (
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        f"Content-Type: {media_type}\r\nX-Request-Id: {rid}\r\nContent-Length: {len(body)}\r\n\r\n{body}"
    )
    return answer.encode("ascii")


def message_of(error: BaseException, head: bytes) -> str:
    """What to tell beside the status; empty where the status says it all."""
    host = _host(head)
    if isinstance(error, PlainHttp):
        return f"this port speaks HTTPS: https://{host}/" if host else "this port speaks HTTPS"
    cookies = sum(len(line) for line in _COOKIES.findall(head))
    if isinstance(error, http_errors.LimitRequestHeaders) and cookies > FIELD_MAX:
        return (
            f"the cookies of {host or 'this host'} are {cookies} bytes, at most {FIELD_MAX}: programs on"
            " other ports of the host have set them; delete them in the browser"
        )
    return ""


def _host(head: bytes) -> str:
    """The Host header as it may be repeated; empty without one, or with any other characters."""
    found = _HOST.search(head)
    return found[1].decode("ascii") if found else ""
