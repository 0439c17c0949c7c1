"""Images and the registry allowlist."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import REGISTRY_HOST, REGISTRY_PATH
from svc.web.schemas.fields import Flag
from svc.web.schemas.operations import STATUSES as OPERATION_STATUSES
from svc.web.schemas.operations import Operation, Progress
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


class UnderWay(Schema):
    """The pull or build of an image that is under way."""

    id = fields.String()
    kind = fields.String()
    status = fields.String()
    phase = fields.String()
    progress = fields.Nested(Progress)


class Image(Schema):
    """An image as the caller's own store has it."""

    template = fields.Nested(TemplateOfImage, allow_none=True)
    ref = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    digest = fields.String(allow_none=True)
    size_bytes = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    used_by = fields.List(fields.String(), metadata={"description": "names of workspaces"})
    operation = fields.Nested(UnderWay, allow_none=True)
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


class BuildQuery(ListQuery):
    """A page of builds."""

    status = status_field(OPERATION_STATUSES)


class Build(Operation):
    """A build: an operation, with the template that it is of."""

    template = fields.Nested(TemplateOfImage, allow_none=True)


class StoredImage(Schema):
    """An image as the whole of a store shows it."""

    image_id = fields.String()
    names = fields.List(fields.String())
    size_bytes = fields.Integer(metadata={"description": "with what it shares"})
    unique_bytes = fields.Integer(metadata={"description": "what no other image has"})
    shared_bytes = fields.Integer(metadata={"description": "what other images have too"})
    reclaimable_bytes = fields.Integer(metadata={"description": "what a prune gains by it at least"})
    unused = fields.Boolean(metadata={"description": "whether a prune would remove it"})
    created_at = fields.String(allow_none=True)
    used_by = fields.List(fields.String(), metadata={"description": "names of workspaces"})
    templates = fields.List(fields.Nested(TemplateOfImage))
    containers = fields.Integer(metadata={"description": "made from it, also by the user's own hand"})


class Overview(Schema):
    """The caller's own store: every image, and what they take together."""

    items = fields.List(fields.Nested(StoredImage))
    total_bytes = fields.Integer()
    reclaimable_bytes = fields.Integer()
    free_bytes = fields.Integer(metadata={"description": "on the disk of the store"})
    quota_bytes = fields.Integer(allow_none=True, metadata={"description": "null is unlimited"})


class RemovedImage(Schema):
    """One image that a prune has removed."""

    image_id = fields.String()
    names = fields.List(fields.String())
    size_bytes = fields.Integer()


class Pruned(Schema):
    """What a prune has removed, and by how much the store is smaller."""

    removed = fields.List(fields.Nested(RemovedImage))
    freed_bytes = fields.Integer()


IMAGE = Image()
IMAGES = page_of(Image, "ImagePage")
BUILDS = page_of(Build, "BuildPage")
OVERVIEW = Overview()
PRUNED = Pruned()
