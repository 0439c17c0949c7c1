"""What users' disks hold, for administrators."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.web.schemas.fields import matching
from svc.web.schemas.pages import page_of
from svc_helper.wire.limits import USER_NAME

USERS_MAX = 1000
NONE_YET = {"description": "null: not measured yet"}


def _amount(text: str = "") -> fields.Integer:
    return fields.Integer(allow_none=True, metadata={"description": text} if text else NONE_YET)


class DiskUsage(Schema):
    """One user's disks; every amount is null until they have been measured."""

    name = fields.String()
    images_bytes = _amount("layers of images with a name, shared ones once")
    mapped_bytes = _amount("copies of images for other ids (run_as)")
    cache_bytes = _amount("layers that only builds need")
    containers_bytes = _amount("written in workspaces, outside /work")
    volumes_bytes = _amount()
    files_bytes = _amount("the user's own file roots")
    total_bytes = _amount()
    files = _amount("names in the file roots")
    complete = fields.Boolean(
        allow_none=True, metadata={"description": "false: too many files, or some are closed; it is more"}
    )
    quota_image_bytes = fields.Integer(allow_none=True, metadata={"description": "null means unlimited"})
    measured_at = fields.DateTime(allow_none=True)
    waiting = fields.Boolean(metadata={"description": "a measurement was asked for"})
    error = fields.String(allow_none=True, metadata={"description": "why the last one failed"})


class DiskSums(Schema):
    """The amounts of all users together."""

    images_bytes = fields.Integer()
    mapped_bytes = fields.Integer()
    cache_bytes = fields.Integer()
    containers_bytes = fields.Integer()
    volumes_bytes = fields.Integer()
    files_bytes = fields.Integer()
    total_bytes = fields.Integer()


class MeasureRequest(Schema):
    """Whose disks are to be measured."""

    users = fields.List(
        fields.String(validate=matching(USER_NAME, "Not a user name.")),
        load_default=list,
        validate=validate.Length(max=USERS_MAX),
        metadata={"description": "names; none is everybody who is active"},
    )


class MeasureReply(Schema):
    """How many users are waited for."""

    waiting = fields.Integer()


DISK_USAGE = page_of(
    DiskUsage,
    "DiskUsagePage",
    sums=fields.Nested(DiskSums, metadata={"description": "of all users that match"}),
    waiting=fields.Integer(metadata={"description": "users that are still to be measured"}),
    oldest_measured_at=fields.DateTime(allow_none=True),
)
