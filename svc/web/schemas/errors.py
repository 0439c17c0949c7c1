"""The error body, always the same."""

from __future__ import annotations

from marshmallow import Schema, fields


class ErrorField(Schema):
    """One thing that is wrong with what was sent."""

    field = fields.String()
    code = fields.String()
    message = fields.String()


class ErrorInner(Schema):
    """What went wrong and the way out; docs/errors.md lists the codes."""

    code = fields.String()
    message = fields.String()
    hint = fields.String()
    fields_ = fields.List(fields.Nested(ErrorField), data_key="fields")
    details = fields.Dict()
    retryable = fields.Boolean()
    request_id = fields.String()


class ErrorBody(Schema):
    """The body of every answer that is no success."""

    error = fields.Nested(ErrorInner)
