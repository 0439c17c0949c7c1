"""The answer to malformed HTTP, which never reaches the app: the error body of every other error."""

from __future__ import annotations

import http
import json
import ssl
import threading
import time

from gunicorn.http import errors as http_errors

from svc.errors import InvalidRequest, SvcError
from svc.log import log

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


class Lines:
    """The log's lines about malformed requests: whoever sends many must not fill the log."""

    def __init__(self, process: str) -> None:
        self.process = process
        self.lock = threading.Lock()
        self.began = 0.0
        self.written = self.left_out = 0

    def write(self, level: str, **facts: object) -> None:
        """Log one, or count it; the count is logged with the first line of a later second."""
        with self.lock:
            now = time.monotonic()
            left_out = 0
            if now > self.began + 1:
                left_out, self.left_out = self.left_out, 0
                self.began, self.written = now, 0
            self.written += 1
            if self.written > LINES_A_SECOND:
                self.left_out += 1
                return
        if left_out:
            log(self.process, "malformed requests without a line", "warning", count=left_out)
        log(self.process, "malformed request", level, **facts)


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
