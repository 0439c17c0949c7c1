"""The licence."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

LIMIT = {"description": "null is unlimited"}


class Notice(Schema):
    """Something that administrators should do."""

    code = fields.String()
    message = fields.String()
    hint = fields.String(metadata={"description": "the next command"})


class LicenseLimits(Schema):
    """The numbers of a licence."""

    users = fields.Integer(allow_none=True, metadata=LIMIT)
    gpus = fields.Integer(allow_none=True, metadata=LIMIT)


class LicenseUse(Schema):
    """What counts for the limits now."""

    users = fields.Integer(metadata={"description": "accounts that could start something"})
    gpus = fields.Integer(metadata={"description": "leased GPUs"})


class License(Schema):
    """The trial or the licence in force, or the one that was last in force."""

    kind = fields.String(validate=validate.OneOf(["trial", "signed"]))
    state = fields.String(
        validate=validate.OneOf(["active", "ending", "lapsed"]),
        metadata={"description": "ending: within 14 days; lapsed: nothing can be created or started"},
    )
    starts_at = fields.DateTime()
    ends_at = fields.DateTime()
    days_left = fields.Integer(metadata={"description": "a begun day counts; 0 when lapsed"})
    id = fields.String(allow_none=True, metadata={"description": "of a signed one"})
    holder = fields.String(allow_none=True)
    limits = fields.Nested(LicenseLimits)
    used = fields.Nested(LicenseUse)
    problem = fields.String(
        allow_none=True, metadata={"description": "why the installed file is not in force"}
    )
    request_code = fields.String(allow_none=True, metadata={"description": "of this host, for the vendor"})
    keys = fields.List(fields.String(), metadata={"description": "the vendor's keys of this build"})
    notices = fields.List(fields.Nested(Notice))
