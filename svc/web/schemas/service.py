"""Health and version."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class Health(Schema):
    """Whether the service works."""

    status = fields.String(validate=validate.OneOf(["ok", "degraded"]))
    db = fields.String(metadata={"description": "ok, or an error"})
    helper = fields.String(metadata={"description": "ok, or an error"})


class Version(Schema):
    """The running version."""

    version = fields.String()
    commit = fields.String()
    api = fields.String()
    schema = fields.Integer(metadata={"description": "number of the newest migration"})
