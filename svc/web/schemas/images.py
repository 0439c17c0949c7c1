"""Images and the registry allowlist."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from svc.limits import DOCUMENT_BODY_MAX
from svc.web.schemas.errors import ErrorAction, RecordWarning
from svc.web.schemas.fields import ArgumentName, Flag, SecretBytes, duplicates, matching
from svc.web.schemas.operations import STATUSES as OPERATION_STATUSES
from svc.web.schemas.operations import Operation, Progress
from svc.web.schemas.pages import Envelope, ListQuery, page_of, status_field
from svc.web.schemas.resources import Variable
from svc_helper.wire.limits import (
    BUILD_ARGS_BYTES_MAX,
    BUILD_ARGS_MAX,
    BUILD_SECRET_ID,
    BUILD_SECRETS_BYTES_MAX,
    BUILD_SECRETS_MAX,
    REGISTRY_HOST,
    REGISTRY_PATH,
)

REGISTRIES_MAX = 64
ID_RULE = "Use letters, digits, _, . and - (not at the beginning), at most 63."
AUTHORITIES = "ca"  # the id of the host's private authorities in every build
STATUSES = ("missing", "pulling", "building", "ready", "failed")


class ImageQuery(ListQuery):
    """A page of images."""

    status = status_field(STATUSES)


class TemplateOfImage(Schema):
    """A template that has the image."""

    id = fields.String()
    name = fields.String()


class ImageOperation(Schema):
    """The running pull or build of an image."""

    id = fields.String()
    kind = fields.String()
    status = fields.String()
    phase = fields.String()
    progress = fields.Nested(Progress)


class Image(Schema):
    """An image in the caller's own store."""

    template = fields.Nested(TemplateOfImage, allow_none=True)
    ref = fields.String()
    status = fields.String(validate=validate.OneOf(STATUSES))
    digest = fields.String(allow_none=True)
    size_bytes = fields.Integer(allow_none=True)
    error = fields.String(allow_none=True)
    used_by = fields.List(fields.String(), metadata={"description": "names of workspaces"})
    operation = fields.Nested(ImageOperation, allow_none=True)
    warnings = fields.List(fields.Nested(RecordWarning))
    updated_at = fields.DateTime(allow_none=True)


class CheckedImage(Schema):
    """What a pull or build would download, and whether it fits; nothing is downloaded or reserved."""

    verb = fields.String(validate=validate.OneOf(("pull", "build")))
    ref = fields.String()
    images = fields.List(
        fields.String(),
        metadata={"description": "from registries: itself, or the missing bases of a build"},
    )
    download_bytes = fields.Integer()
    present_bytes = fields.Integer(metadata={"description": "of the same images, in the store already"})
    needed_bytes = fields.Integer(metadata={"description": "the least that must be free on the disk"})
    free_bytes = fields.Integer(metadata={"description": "on the disk of the images"})
    used_bytes = fields.Integer(metadata={"description": "by all images in the store"})
    quota_bytes = fields.Integer(allow_none=True, metadata={"description": "for them; null is unlimited"})
    fits = fields.Boolean()
    blocked_by = fields.String(
        allow_none=True,
        metadata={"description": "the code of its failure: storage_full or quota_exceeded"},
    )
    message = fields.String(allow_none=True, metadata={"description": "why it does not fit"})
    hint = fields.String(allow_none=True, metadata={"description": "the command that makes room"})
    action = fields.Nested(ErrorAction, allow_none=True)


class Registry(Schema):
    """One allowed registry; an empty path_prefix allows all of its host."""

    host = fields.String(
        required=True,
        validate=[
            validate.Length(max=255),
            matching(REGISTRY_HOST, "Use a registry host such as registry.example:5000."),
        ],
    )
    path_prefix = fields.String(
        load_default="",
        validate=[
            validate.Length(max=255),
            matching(r"(?!.*\.\.)" + REGISTRY_PATH, "Use a path prefix such as team/images."),
        ],
    )
    insecure = Flag(load_default=False, metadata={"description": "plain HTTP or an untrusted certificate"})


class Registries(Schema):
    """The whole registry policy."""

    registries = fields.List(
        fields.Nested(Registry), required=True, validate=validate.Length(max=REGISTRIES_MAX)
    )


class BuildQuery(ListQuery):
    """A page of builds."""

    status = status_field(OPERATION_STATUSES)


class BuildSecret(Schema):
    """A secret for `RUN --mount=type=secret,id=ID`; its value is in no answer, log or record."""

    id = fields.String(required=True, validate=matching(BUILD_SECRET_ID, ID_RULE))
    value = SecretBytes(required=True)


class BuildArgument(Variable):
    """The value of an ARG."""

    name = ArgumentName(required=True)


class BuildRequest(Schema):
    """The values of a Dockerfile's ARGs and secrets, each name once."""

    body_max = DOCUMENT_BODY_MAX

    build_args = fields.List(
        fields.Nested(BuildArgument), load_default=list, validate=validate.Length(max=BUILD_ARGS_MAX)
    )

    secrets = fields.List(
        fields.Nested(BuildSecret), load_default=list, validate=validate.Length(max=BUILD_SECRETS_MAX)
    )

    @validates_schema(skip_on_field_errors=True)
    def each_secret_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a duplicate id, the one that is svc's own, and more than an agent keeps."""
        listed = data.get("secrets", [])
        ids = [one["id"] for one in listed]
        if len(ids) != len(set(ids)) or AUTHORITIES in ids:
            raise ValidationError({"secrets": [f"Use each id once; {AUTHORITIES} is svc's own."]})
        if sum(len(one["value"]) for one in listed) > BUILD_SECRETS_BYTES_MAX:
            raise ValidationError({"secrets": [f"Use at most {BUILD_SECRETS_BYTES_MAX} bytes in all."]})

    @validates_schema(skip_on_field_errors=True)
    def each_name_once(self, data: dict[str, Any], **_: Any) -> None:
        """Refuse a duplicate name, and more than fits a command line."""
        listed = data.get("build_args", [])
        if errors := duplicates(listed):
            raise ValidationError({"build_args": errors})
        if sum(len(f"{one['name']}{one['value']}".encode()) for one in listed) > BUILD_ARGS_BYTES_MAX:
            raise ValidationError({"build_args": [f"Use at most {BUILD_ARGS_BYTES_MAX} bytes in all."]})


class Build(Operation):
    """A build."""


class RemovedImage(Schema):
    """An image that a prune removed."""

    image_id = fields.String()
    names = fields.List(fields.String())
    size_bytes = fields.Integer(metadata={"description": "including shared layers"})


class StoredImage(RemovedImage):
    """An image in the overview of a store."""

    unique_bytes = fields.Integer(metadata={"description": "in no other image"})
    shared_bytes = fields.Integer(metadata={"description": "in other images too"})
    reclaimable_bytes = fields.Integer(metadata={"description": "the least that a prune frees"})
    unused = fields.Boolean(metadata={"description": "whether a prune would remove it"})
    created_at = fields.String(allow_none=True)
    used_by = fields.List(
        fields.String(),
        metadata={"description": "names of workspaces, by what their containers were made from"},
    )
    newer_for = fields.List(
        fields.String(), metadata={"description": "names of workspaces that an upgrade would move to it"}
    )
    templates = fields.List(fields.Nested(TemplateOfImage))
    left_by_build = fields.Boolean(
        metadata={"description": "whether it is what a build left that failed or was cancelled"}
    )
    containers = fields.Integer(metadata={"description": "created from it, also without svc"})


class Overview(Envelope):
    """The caller's own store: every image, and their total size."""

    items = fields.List(fields.Nested(StoredImage))
    total_bytes = fields.Integer()
    reclaimable_bytes = fields.Integer()
    free_bytes = fields.Integer(metadata={"description": "on the disk of the store"})
    unused_volumes = fields.Integer(
        metadata={"description": "of an image's VOLUME, of containers that are gone; a prune removes them"}
    )
    quota_bytes = fields.Integer(allow_none=True, metadata={"description": "null is unlimited"})


class Pruned(Schema):
    """The images and volumes that a prune removed, and the freed space."""

    removed = fields.List(fields.Nested(RemovedImage))
    freed_bytes = fields.Integer(metadata={"description": "of the images"})
    removed_volumes = fields.Integer()


ALLOWLIST = page_of(Registry, "Allowlist")
IMAGES = page_of(Image, "ImagePage")
BUILDS = page_of(Build, "BuildPage")
