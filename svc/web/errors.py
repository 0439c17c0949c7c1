"""The one place where a failure becomes an HTTP answer.

Always the error body of svc.errors, never a traceback: what was not foreseen is
logged with its trace under the request id, and answered as internal_error.
"""

from __future__ import annotations

import traceback

from flask import Flask, Response, g
from werkzeug import exceptions as http

from svc.errors import (
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    RangeUnsatisfiable,
    SvcError,
    Unauthenticated,
)
from svc.log import log
from svc.web import inputs, outputs
from svc.web.gunicorn_worker import MalformedBody

RETRY_AFTER_S = 1  # where the error does not know better


def install(app: Flask) -> None:
    """Register the conversion with an app."""
    app.register_error_handler(SvcError, answer_of)
    app.register_error_handler(http.HTTPException, _of_http)
    app.register_error_handler(MalformedBody, _of_broken_body)
    app.register_error_handler(Exception, _of_bug)


def answer_of(error: SvcError) -> Response:
    """The answer of an error that somebody raised on purpose."""
    response = outputs.shown(error.body(g.rid), error.status)
    if error.retryable or error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s or RETRY_AFTER_S)
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RangeUnsatisfiable):
        response.headers["Content-Range"] = f"bytes */{error.details['size']}"
    g.error_code = error.code
    return response


def _of_http(error: http.HTTPException) -> Response:
    """The answer of what Flask and Werkzeug refuse by themselves."""
    if isinstance(error, http.MethodNotAllowed):
        allow = ", ".join(sorted(error.valid_methods or ()))
        response = answer_of(MethodNotAllowed(f"this path takes {allow}"))
        response.headers["Allow"] = allow
        return response
    if isinstance(error, http.RequestEntityTooLarge):
        return answer_of(inputs.too_large())
    if isinstance(error, http.NotFound):
        return answer_of(NotFound("there is no such path", hint="svc api GET /api/openapi.json"))
    if error.code is not None and error.code < 500:
        return answer_of(InvalidRequest(f"the request cannot be understood: {error.name}"))
    return _of_bug(error)


def _of_broken_body(_error: MalformedBody) -> Response:
    """The answer when gunicorn finds, while the body is read, that its chunks are none."""
    return answer_of(InvalidRequest("the request cannot be understood: its body is not in chunks as it says"))


def _of_bug(error: Exception) -> Response:
    """A process edge: whatever was not foreseen ends here, in the log and as internal_error."""
    log(g.listener, "unforeseen failure", "error", rid=g.rid, error=repr(error), trace=traceback.format_exc())
    return answer_of(SvcError("something went wrong here; the log has it under the request id"))
