"""Images and the registry allowlist."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import REGISTRY_HOST, REGISTRY_PATH
from svc.web.schemas.fields import Flag
from svc.web.schemas.pages import ListQuery, page_of, status_field

REGISTRIES_MAX = 64
STATUSES = ("missing", "pulling", "building", "ready", "failed")


class ImageQuery(ListQuery):
    """A page of images."""

    status = status_field(STATUSES)


class TemplateOfImage(Schema):
    """A template that has the image."""

    id = fields.String()
    name = fields.String()


class Image(Schema):
    """An image as the caller's own store has it."""

    template = fields.Nested(TemplateOfImage, allow_none=True)
    ref = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    digest = fields.String(allow_none=True)
    size_bytes = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    used_by = fields.List(fields.String(), metadata={"description": "names of workspaces"})
    updated_at = fields.DateTime(allow_none=True)


class Registry(Schema):
    """One allowed registry; an empty path_prefix allows all of its host."""

    host = fields.String(
        required=True,
        validate=validate.And(
            validate.Length(max=255),
            validate.Regexp(
                REGISTRY_HOST + r"\Z", error="Not a registry host such as registry.example:5000."
            ),
        ),
    )
    path_prefix = fields.String(
        load_default="",
        validate=validate.And(
            validate.Length(max=255),
            validate.Regexp(
                r"(?!.*\.\.)" + REGISTRY_PATH + r"\Z", error="Not a path prefix such as team/images."
            ),
        ),
    )
    insecure = Flag(load_default=False, metadata={"description": "plain HTTP or an unknown certificate"})


class Registries(Schema):
    """The whole registry policy."""

    registries = fields.List(
        fields.Nested(Registry), required=True, validate=validate.Length(max=REGISTRIES_MAX)
    )


class Allowlist(Schema):
    """The registries from which images may come."""

    items = fields.List(fields.Nested(Registry))


IMAGE = Image()
IMAGES = page_of(Image, "ImagePage")
