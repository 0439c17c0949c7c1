"""The import of a bundle."""

from __future__ import annotations

from marshmallow import Schema, fields, validate


class ImportQuery(Schema):
    """`scope` of the imported template."""

    scope = fields.String(
        load_default="private",
        validate=validate.OneOf(["private", "global"]),
        metadata={"description": "global is for administrators"},
    )
