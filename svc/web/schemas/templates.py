"""Templates: requests and records."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, validate

from svc.limits import BUNDLE_DOCKERFILE_MAX, DOCUMENT_BODY_MAX, REVISION_MAX
from svc.web.schemas.fields import (
    Flag,
    QueryFlag,
    QueryNumber,
    Raw,
    Slug,
    Text,
    VariableName,
    Whole,
    main_command_field,
    network_field,
    variable_value,
)
from svc.web.schemas.pages import ListQuery, owner_field, page_of, status_field
from svc.web.schemas.resources import Defaults, Limits, RunAs, WithEnv
from svc.web.schemas.template_parts import Gpu, Idle, Launcher, Mount, Port, WithParts
from svc_helper.wire.limits import ENV_COUNT_MAX, IMAGE_REF_MAX

DESCRIPTION_MAX = 1024
RESERVED = ("import",)  # a path beside those of templates
SOURCES = ("registry", "dockerfile")


class TemplateQuery(ListQuery):
    """A page of templates."""

    status = status_field(("enabled", "disabled"))
    owner = owner_field()


def dockerfile_text(**options: Any) -> Raw:
    """A whole Dockerfile."""
    return Raw(BUNDLE_DOCKERFILE_MAX, 1, **options)


class SourceChange(Schema):
    """Another image or Dockerfile, which disables the template; its type cannot change."""

    type = fields.String(validate=validate.OneOf(SOURCES))
    image_ref = Raw(IMAGE_REF_MAX, 1, metadata={"description": "of a registry template"})
    dockerfile = dockerfile_text(metadata={"description": "of a private Dockerfile template"})
    local_only = Flag(metadata={"description": "of a global Dockerfile template: each user builds the image"})


class SourceCreate(SourceChange):
    """The source of the image: registry with image_ref, or dockerfile with its text.

    A global registry template may have a Dockerfile too, for users whose download fails.
    """

    type = fields.String(load_default="registry", validate=validate.OneOf(SOURCES))


class TemplateVariable(Schema):
    """An environment variable; a secret one is never returned, and keeps its value without a new one."""

    name = VariableName(required=True)
    value = variable_value(allow_none=True)
    secret = Flag(load_default=False)


class TemplatePatch(WithEnv, WithParts):
    """The changes of a template; enable and disable change its `status`."""

    body_max = DOCUMENT_BODY_MAX

    name = Slug(RESERVED, "tpl")
    description = Text(DESCRIPTION_MAX)
    source = fields.Nested(SourceChange)
    env = fields.List(fields.Nested(TemplateVariable), validate=validate.Length(max=ENV_COUNT_MAX))
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    command = main_command_field("of workspaces, or arguments for the image's own; null for the image's")
    run_as = fields.Nested(RunAs, allow_none=True)
    network = network_field()


class ImportQuery(Schema):
    """`scope` of an imported or new template."""

    scope = fields.String(
        load_default="private",
        validate=validate.OneOf(["private", "global"]),
        metadata={"description": "global is for administrators"},
    )


class TemplateCreate(TemplatePatch, ImportQuery):
    """A new template; one of `scope` global starts disabled."""

    name = Slug(RESERVED, "tpl", required=True)
    source = fields.Nested(SourceCreate, required=True)


class TemplateClone(Schema):
    """The name of the clone."""

    name = Slug(RESERVED, "tpl", required=True)


class TemplateEnable(Schema):
    """The reviewed revision, optionally."""

    revision = Whole(1, REVISION_MAX, metadata={"description": "refused unless it is the current one"})


class DockerfileText(Schema):
    """The new Dockerfile of a template."""

    body_max = DOCUMENT_BODY_MAX

    dockerfile = dockerfile_text(required=True)


class ContextQuery(Schema):
    """The path of one file of a build context."""

    undecodable = "surrogateescape"  # a path that is not UTF-8 is refused, instead of being another

    path = fields.String(required=True, metadata={"description": "relative to the build context"})


class ContextPutQuery(ContextQuery):
    """The file to add or replace."""

    executable = QueryFlag(metadata={"description": "true or false; without it as the file was before"})


class ContextFile(Schema):
    """A file of a build context."""

    path = fields.String()
    size = fields.Integer()
    executable = fields.Boolean()
    sha256 = fields.String()


class Dockerfile(Schema):
    """The Dockerfile of a template; of a global one it is read-only."""

    dockerfile = fields.String()
    read_only = fields.Boolean()


class Source(Schema):
    """The source of the image; the text of the Dockerfile has a path of its own."""

    type = fields.String(validate=validate.OneOf(SOURCES))
    image_ref = fields.String()
    local_only = fields.Boolean()
    has_dockerfile = fields.Boolean()
    context_files = fields.Integer(metadata={"description": "files of the build context"})
    context_bytes = fields.Integer()


class VariableRecord(Schema):
    """An environment variable; of a secret one without its value."""

    name = fields.String()
    value = fields.String(allow_none=True)
    secret = fields.Boolean()
    is_set = fields.Boolean()


class Finding(Schema):
    """A finding for the review."""

    code = fields.String()
    message = fields.String()
    file = fields.String(allow_none=True, metadata={"description": "the file that it is in: Dockerfile"})
    line = fields.Integer(allow_none=True, metadata={"description": "of that file, from 1"})
    diff = fields.String(
        allow_none=True, metadata={"description": "the change, in the record of one template; not in lists"}
    )


class Template(Schema):
    """A template."""

    id = fields.String()
    name = fields.String()
    description = fields.String()
    scope = fields.String(validate=validate.OneOf(["private", "global"]))
    owner = fields.String(allow_none=True)
    status = fields.String(validate=validate.OneOf(["enabled", "disabled"]))
    source = fields.Nested(Source)
    managed = fields.Boolean()
    cloned_from = fields.String(allow_none=True)
    revision = fields.Integer()
    reviewed_revision = fields.Integer(allow_none=True, metadata={"description": "the last enabled one"})
    findings = fields.List(fields.Nested(Finding))
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    gpu = fields.Nested(Gpu)
    command = fields.List(fields.String(), allow_none=True)
    run_as = fields.Nested(RunAs, allow_none=True)
    env = fields.List(fields.Nested(VariableRecord))
    launchers = fields.List(fields.Nested(Launcher))
    ports = fields.List(fields.Nested(Port))
    mounts = fields.List(fields.Nested(Mount))
    network = fields.String(allow_none=True)
    idle = fields.Nested(Idle)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()


class Revision(Schema):
    """A kept revision of a template."""

    revision = fields.Integer()
    created_at = fields.DateTime()
    source_type = fields.String(validate=validate.OneOf(SOURCES))
    image_ref = fields.String()
    workspaces = fields.Integer(metadata={"description": "workspaces that use it"})
    is_current = fields.Boolean(metadata={"description": "the present one"})
    is_reviewed = fields.Boolean(metadata={"description": "the last that was enabled"})


class RevisionContent(Revision):
    """A kept revision with its document and its Dockerfile."""

    source = fields.Nested(Source)
    description = fields.String()
    dockerfile = fields.String(allow_none=True)
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    gpu = fields.Nested(Gpu)
    command = fields.List(fields.String(), allow_none=True)
    run_as = fields.Nested(RunAs, allow_none=True)
    env = fields.List(fields.Nested(VariableRecord))
    launchers = fields.List(fields.Nested(Launcher))
    ports = fields.List(fields.Nested(Port))
    mounts = fields.List(fields.Nested(Mount))
    network = fields.String(allow_none=True)
    idle = fields.Nested(Idle)


class DiffQuery(Schema):
    """The revisions to compare: the present one and the one before it where they are not named."""

    before = QueryNumber(1, REVISION_MAX, data_key="from")
    after = QueryNumber(1, REVISION_MAX, data_key="to")


class FieldChange(Schema):
    """A field of the template that differs; secret values are replaced by whether they are set."""

    field = fields.String()
    before = fields.Raw(allow_none=True)
    after = fields.Raw(allow_none=True)


class Difference(Schema):
    """What differs between two revisions."""

    before = fields.Integer()
    after = fields.Integer()
    changed = fields.List(fields.String(), metadata={"description": "the names of what differs"})
    fields_ = fields.List(fields.Nested(FieldChange), data_key="fields", attribute="fields")
    dockerfile = fields.String(allow_none=True, metadata={"description": "a unified diff"})
    context = fields.String(allow_none=True, metadata={"description": "a unified diff of the files' digests"})


TEMPLATE = Template()
TEMPLATES = page_of(Template, "TemplatePage")
REVISIONS = page_of(Revision, "RevisionPage")
CONTEXT_FILES = page_of(ContextFile, "ContextFilePage")
