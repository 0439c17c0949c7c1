"""Health and version."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.web.schemas.errors import ErrorInner


class Health(Schema):
    """Whether the service works."""

    status = fields.String(validate=validate.OneOf(["ok", "degraded"]))
    db = fields.String(metadata={"description": "ok, or an error's code"})
    helper = fields.String(metadata={"description": "ok, or an error's code"})
    license = fields.String(
        metadata={"description": "ok, license_ending (within 14 days), license_lapsed, or an error's code"}
    )
    error = fields.Nested(ErrorInner, metadata={"description": "what is wrong; missing when all is well"})


class Version(Schema):
    """The running version."""

    version = fields.String()
    commit = fields.String()
    api = fields.String()
    schema = fields.Integer(metadata={"description": "number of the newest migration"})
