"""The only place that converts an exception into an HTTP response.

Always the error body of svc.errors (or a page, where a browser asks for a path that
nothing has), never a traceback: an unexpected exception is logged with its traceback
under the request id and answered as internal_error.
"""

from __future__ import annotations

import sqlite3
import traceback
from collections.abc import Callable

import peewee
from flask import Flask, Response, g
from werkzeug import exceptions as http

from svc.db.connect import raise_fault
from svc.errors import (
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    RangeUnsatisfiable,
    SvcError,
    Unauthenticated,
)
from svc.log import log
from svc.web import actions, audited, inputs, outputs
from svc.web.gunicorn_worker import MalformedBody

RETRY_AFTER_S = 1  # of a retryable error without a time of its own


def install(app: Flask, nothing_here: Callable[[], Response | None]) -> None:
    """Register the error handlers with an app; `nothing_here` gives the page for an unknown path, if any."""

    def of_unknown_path(error: http.NotFound) -> Response:
        if (page := nothing_here()) is None:
            return _of_http_error(error)
        g.error_code = NotFound.code
        return page

    app.register_error_handler(SvcError, response_of)
    app.register_error_handler(http.HTTPException, _of_http_error)
    app.register_error_handler(http.NotFound, of_unknown_path)
    app.register_error_handler(MalformedBody, _of_broken_body)
    app.register_error_handler(peewee.DatabaseError, _of_database)
    app.register_error_handler(sqlite3.DatabaseError, _of_database)
    app.register_error_handler(Exception, _of_bug)


def response_of(error: SvcError) -> Response:
    """The response to an error of ours."""
    error = audited.refused(error)
    body = error.body(g.rid)
    body["error"]["action"] = actions.permitted(body["error"]["action"]) or actions.again(error)
    response = outputs.response(body, error.status)
    if error.retryable or error.retry_after_s is not None:
        response.headers["Retry-After"] = str(error.retry_after_s or RETRY_AFTER_S)
    if isinstance(error, Unauthenticated):
        response.headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, RangeUnsatisfiable):
        response.headers["Content-Range"] = f"bytes */{error.details['size']}"
    g.error_code = error.code
    return response


def _of_http_error(error: http.HTTPException) -> Response:
    """The response to an error of Flask or Werkzeug."""
    if isinstance(error, http.MethodNotAllowed):
        allow = ", ".join(sorted(error.valid_methods or ()))
        response = response_of(MethodNotAllowed(f"this path allows only {allow}"))
        response.headers["Allow"] = allow
        return response
    if isinstance(error, http.RequestEntityTooLarge):
        return response_of(inputs.too_large())
    if isinstance(error, http.NotFound):
        where = "" if g.listener == "unix" else "on the host: "  # where also those with a token may read it
        return response_of(NotFound("there is no such path", hint=f"{where}svc api GET /api/openapi.json"))
    if error.code is not None and error.code < 500:
        return response_of(InvalidRequest(f"the request is not valid: {error.name}"))
    return _of_bug(error)


def _of_database(error: Exception) -> Response:
    """The response to an error of SQLite: a fault of the disk or of another process, or a bug."""
    try:
        raise_fault(error, busy=True)
    except SvcError as fault:
        return response_of(fault)
    return _of_bug(error)


def _of_broken_body(_error: MalformedBody) -> Response:
    """The response to a chunked body that gunicorn could not decode."""
    return response_of(InvalidRequest("the body is not a valid chunked encoding"))


def _of_bug(error: Exception) -> Response:
    """The response to an unexpected exception, which is logged."""
    log(
        g.listener,
        "unexpected exception",
        "error",
        rid=g.rid,
        error=repr(error),
        trace=traceback.format_exc(),
    )
    return response_of(SvcError("internal error; the server log has the details under the request id"))
