"""The answer to malformed HTTP, which never reaches the app: the error body of every other error."""

from __future__ import annotations

import http
import json
import ssl

from gunicorn.http import errors as http_errors

from svc.errors import InvalidRequest, SvcError

LINES_A_SECOND = 5  # in the log; more are counted
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


def status_of(error: BaseException) -> int:
    """The HTTP status for an exception of gunicorn's parser."""
    return next((status for kind, status in STATUSES if isinstance(error, kind)), 500)


def response(status: int, rid: str) -> bytes:
    """The whole response."""
    error = (InvalidRequest if status < 500 else SvcError)("the request is not well-formed HTTP/1.1")
    body = json.dumps(error.body(rid)).encode()
    head = (
        f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nX-Request-Id: {rid}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("ascii") + body
