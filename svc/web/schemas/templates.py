"""Templates: what creating and editing take, and the record."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, validate

from svc.limits import BUNDLE_DOCKERFILE_MAX, ENV_COUNT_MAX, IMAGE_REF_MAX
from svc.web.schemas.fields import Command, Flag, Raw, Slug, Text, VariableName, Whole, variable_value
from svc.web.schemas.pages import ListQuery, owner_field, page_of, status_field
from svc.web.schemas.resources import Defaults, Limits, RunAs, WithEnv
from svc.web.schemas.template_parts import Gpu, Idle, Launcher, Mount, Port, WithParts

DESCRIPTION_MAX = 1024
RESERVED = ("import",)  # a path beside the templates' own
SOURCES = ("registry", "dockerfile")
REVISION_MAX = 2**31 - 1
COMMAND_WORD_MAX = 4096


class TemplateQuery(ListQuery):
    """A page of templates."""

    status = status_field(("enabled", "disabled"))
    owner = owner_field()


def dockerfile_text(**options: Any) -> Raw:
    """A whole Dockerfile."""
    return Raw(BUNDLE_DOCKERFILE_MAX, 1, **options)


class SourceChange(Schema):
    """Another image or Dockerfile, which disables the template; its type stays."""

    type = fields.String(validate=validate.OneOf(SOURCES))
    image_ref = Raw(IMAGE_REF_MAX, 1, metadata={"description": "of a registry template"})
    dockerfile = dockerfile_text(metadata={"description": "of a private Dockerfile template"})
    local_only = Flag(metadata={"description": "of a global Dockerfile template: each user builds it"})


class SourceWanted(SourceChange):
    """Where the image comes from: registry with image_ref, or dockerfile with its text.

    A global registry template may have a dockerfile too, the fallback of whose download fails.
    """

    type = fields.String(load_default="registry", validate=validate.OneOf(SOURCES))


class TemplateVariable(Schema):
    """One environment variable; a secret one is never read, and keeps its value when none is given."""

    name = VariableName(required=True)
    value = variable_value(allow_none=True)
    secret = Flag(load_default=False)


class TemplatePatch(WithEnv, WithParts):
    """What may be changed; `status` is not, that is for enable and disable."""

    name = Slug(RESERVED)
    description = Text(DESCRIPTION_MAX)
    source = fields.Nested(SourceChange)
    env = fields.List(fields.Nested(TemplateVariable), validate=validate.Length(max=ENV_COUNT_MAX))
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    command = Command(COMMAND_WORD_MAX, program=False, allow_none=True)  # or arguments of the image's own
    run_as = fields.Nested(RunAs, allow_none=True)


class TemplateCreate(TemplatePatch):
    """A new template; `scope` global is for administrators and starts disabled."""

    name = Slug(RESERVED, required=True)
    source = fields.Nested(SourceWanted, required=True)
    scope = fields.String(load_default="private", validate=validate.OneOf(["private", "global"]))


class TemplateClone(Schema):
    """The clone's name."""

    name = Slug(RESERVED, required=True)


class TemplateEnable(Schema):
    """What was looked at, if the caller says."""

    revision = Whole(1, REVISION_MAX, metadata={"description": "refused when it is not the present one"})


class DockerfileText(Schema):
    """A Dockerfile in place of the one that is there."""

    dockerfile = dockerfile_text(required=True)


class Dockerfile(Schema):
    """A template's Dockerfile; a global template's is read-only."""

    dockerfile = fields.String()
    read_only = fields.Boolean()


class Source(Schema):
    """Where the image comes from; the Dockerfile's text has a path of its own."""

    type = fields.String(validate=validate.OneOf(SOURCES))
    image_ref = fields.String()
    local_only = fields.Boolean()
    has_dockerfile = fields.Boolean()
    context_files = fields.Integer(metadata={"description": "files of the build context"})
    context_bytes = fields.Integer()


class VariableShown(Schema):
    """One environment variable, a secret one without its value."""

    name = fields.String()
    value = fields.String(allow_none=True)
    secret = fields.Boolean()
    is_set = fields.Boolean()


class Finding(Schema):
    """What a review has to look at."""

    code = fields.String()
    message = fields.String()
    diff = fields.String(
        allow_none=True, metadata={"description": "what changed, in one template's record; not in lists"}
    )


class Template(Schema):
    """A template as the API shows it."""

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
    reviewed_revision = fields.Integer(
        allow_none=True, metadata={"description": "the last one that was enabled"}
    )
    findings = fields.List(fields.Nested(Finding))
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    gpu = fields.Nested(Gpu)
    command = fields.List(fields.String(), allow_none=True)
    run_as = fields.Nested(RunAs, allow_none=True)
    env = fields.List(fields.Nested(VariableShown))
    launchers = fields.List(fields.Nested(Launcher))
    ports = fields.List(fields.Nested(Port))
    mounts = fields.List(fields.Nested(Mount))
    idle = fields.Nested(Idle)
    created_at = fields.DateTime()
    updated_at = fields.DateTime()


TEMPLATE = Template()
DOCKERFILE = Dockerfile()
TEMPLATES = page_of(Template, "TemplatePage")
