"""The body of every error."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorField(Schema):
    """One invalid field of the request."""

    field = fields.String()
    code = fields.String()
    message = fields.String()


class ErrorInner(Schema):
    """The error and what to do next; docs/errors.md lists the codes."""

    code = fields.String()
    message = fields.String()
    hint = fields.String()
    fields_ = fields.List(fields.Nested(ErrorField), data_key="fields")
    details = fields.Dict(
        metadata={
            "description": "by code; `engine`: what Podman, crun or a registry client printed, escaped, for"
            " the owner; `output` and `exit_code`: of a program that has exited at once"
        }
    )
    retryable = fields.Boolean()
    request_id = fields.String()


class ErrorBody(Schema):
    """The body of every error."""

    error = fields.Nested(ErrorInner)
