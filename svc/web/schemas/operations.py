"""Operations: pulls, builds and set-ups in the background."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.web.schemas.errors import ErrorInner

STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")


class Progress(Schema):
    """The progress of an operation; each key may be missing."""

    current = fields.Integer()
    total = fields.Integer()
    unit = fields.String(metadata={"description": "bytes or steps"})
    text = fields.String()


class Subject(Schema):
    """The subject of an operation."""

    type = fields.String()
    id = fields.String()


class Operation(Schema):
    """An operation."""

    id = fields.String()
    kind = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    phase = fields.String()
    progress = fields.Nested(Progress)
    error = fields.Nested(ErrorInner, allow_none=True)
    subject = fields.Nested(Subject)
    result = fields.Dict(allow_none=True)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()
    finished_at = fields.DateTime(allow_none=True)


class Accepted(Schema):
    """The body of a 202."""

    operation = fields.Nested(Operation)


class LogLine(Schema):
    """One line of an operation's log."""

    at = fields.DateTime()
    text = fields.String()


class OperationLog(Schema):
    """The log of an operation, oldest line first."""

    lines = fields.List(fields.Nested(LogLine))


ACCEPTED = Accepted()
