"""Health and version, open on both listeners."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class Health(Schema):
    """Whether the service can do its work."""

    status = fields.String(validate=validate.OneOf(["ok", "degraded"]))
    db = fields.String(metadata={"description": "ok, or what is wrong"})
    helper = fields.String(metadata={"description": "ok, or what is wrong"})


class Version(Schema):
    """What runs here."""

    version = fields.String()
    commit = fields.String()
    api = fields.String()
    schema = fields.Integer(metadata={"description": "number of the newest migration"})
