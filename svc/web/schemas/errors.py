"""The body of every error."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorField(Schema):
    """One invalid field of the request."""

    field = fields.String()
    code = fields.String()
    message = fields.String()


class ErrorAction(Schema):
    """A request that the caller may send next, and the text of a button for it."""

    label = fields.String()
    method = fields.String()
    path = fields.String()
    body = fields.Dict(allow_none=True, metadata={"description": "null: none is sent"})


class ErrorInner(Schema):
    """The error and what to do next; docs/errors.md lists the codes."""

    code = fields.String()
    message = fields.String()
    hint = fields.String(metadata={"description": "the next command to type"})
    action = fields.Nested(
        ErrorAction,
        allow_none=True,
        metadata={"description": "the hint as a request, where a button can do it"},
    )
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


class RecordWarning(Schema):
    """What of a record will not work as it is, though nothing is refused."""

    code = fields.String(
        metadata={
            "description": "image_user: an image whose programs do not run as root;"
            " wrong_architecture: an image for another platform"
        }
    )
    message = fields.String()
    hint = fields.String(metadata={"description": "the next command"})
