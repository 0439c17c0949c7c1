"""Templates: what creating and editing take, and the record."""

from __future__ import annotations

from marshmallow import Schema, fields, validate

from svc.limits import IMAGE_REF_MAX
from svc.web.schemas.fields import Raw, Slug, Text
from svc.web.schemas.pages import ListQuery, owner_field, page_of, status_field
from svc.web.schemas.resources import Defaults, Limits, RunAs, Variable, WithEnv

DESCRIPTION_MAX = 1024
RESERVED = ("import",)  # a path beside the templates' own
COMMAND_WORD_MAX, COMMAND_WORDS_MAX = 4096, 256


class TemplateQuery(ListQuery):
    """A page of templates."""

    status = status_field(("enabled", "disabled"))
    owner = owner_field()


class Source(Schema):
    """Where the image comes from."""

    type = fields.String(load_default="registry", validate=validate.OneOf(["registry"]))
    image_ref = Raw(IMAGE_REF_MAX, 1, required=True)


class TemplatePatch(WithEnv):
    """What may be changed; `status` is not, that is for enable and disable."""

    name = Slug(RESERVED)
    description = Text(DESCRIPTION_MAX)
    source = fields.Nested(Source)
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    command = fields.List(
        Raw(COMMAND_WORD_MAX), allow_none=True, validate=validate.Length(1, COMMAND_WORDS_MAX)
    )
    run_as = fields.Nested(RunAs, allow_none=True)


class TemplateCreate(TemplatePatch):
    """A new template; `scope` global is for administrators and starts disabled."""

    name = Slug(RESERVED, required=True)
    source = fields.Nested(Source, required=True)
    scope = fields.String(load_default="private", validate=validate.OneOf(["private", "global"]))


class Finding(Schema):
    """What a review has to look at."""

    code = fields.String()
    message = fields.String()


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
    findings = fields.List(fields.Nested(Finding))
    defaults = fields.Nested(Defaults)
    limits = fields.Nested(Limits)
    command = fields.List(fields.String(), allow_none=True)
    run_as = fields.Nested(RunAs, allow_none=True)
    launchers = fields.List(fields.Dict())
    ports = fields.List(fields.Dict())
    env = fields.List(fields.Nested(Variable))
    created_at = fields.DateTime()
    updated_at = fields.DateTime()


TEMPLATE = Template()
TEMPLATES = page_of(Template, "TemplatePage")
