"""Operations: pulls, builds and set-ups in the background."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.domain.operations import KINDS
from svc.web.schemas.errors import ErrorInner
from svc.web.schemas.fields import QueryNumber, Text
from svc.web.schemas.pages import ListQuery, choices_field, page_of, status_field
from svc_helper.wire.limits import IMAGE_REF_MAX

AFTER_MAX = 10**9
STATUSES = ("queued", "running", "succeeded", "failed", "cancelled")


class Progress(Schema):
    """The progress of an operation; each key may be missing."""

    current = fields.Integer()
    total = fields.Integer()
    unit = fields.String(metadata={"description": "bytes or steps"})
    text = fields.String()
    rate = fields.Integer(metadata={"description": "bytes in a second, smoothed over some seconds"})
    seconds_left = fields.Integer(
        allow_none=True, metadata={"description": "at that rate; null while it cannot be told"}
    )


class Subject(Schema):
    """The subject of an operation."""

    type = fields.String()
    id = fields.String()
    name = fields.String(metadata={"description": "of the workspace that a set-up creates, else as id"})


class TemplateOfOperation(Schema):
    """The template of an operation."""

    id = fields.String()
    name = fields.String()


class Operation(Schema):
    """An operation."""

    id = fields.String()
    kind = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    phase = fields.String()
    progress = fields.Nested(Progress)
    error = fields.Nested(ErrorInner, allow_none=True)
    subject = fields.Nested(Subject)
    template = fields.Nested(TemplateOfOperation, allow_none=True)
    result = fields.Dict(allow_none=True)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()
    finished_at = fields.DateTime(allow_none=True)


class Accepted(Schema):
    """The body of a 202."""

    operation = fields.Nested(Operation)


class OperationQuery(ListQuery):
    """A page of operations."""

    status = status_field(STATUSES)
    kind = choices_field(KINDS)
    subject = Text(
        IMAGE_REF_MAX,
        load_default="",
        metadata={"description": "an image's reference, or the id or name of a workspace or a template"},
    )


class LogQuery(Schema):
    """The lines of a log that come after one."""

    after = QueryNumber(
        0, AFTER_MAX, load_default=0, metadata={"description": "the number of the last line that is known"}
    )


class LogLine(Schema):
    """One line of an operation's log."""

    line = fields.Integer(metadata={"description": "its number, from 1"})
    at = fields.DateTime()
    text = fields.String()


class OperationLog(Schema):
    """The log of an operation, oldest line first."""

    lines = fields.List(fields.Nested(LogLine))
    next = fields.Integer(metadata={"description": "the `after` of the next request"})
    ended = fields.Boolean(metadata={"description": "whether no further line comes"})


ACCEPTED = Accepted()
OPERATIONS = page_of(Operation, "OperationPage")
