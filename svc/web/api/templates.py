"""Templates: list, create, get, edit, delete, clone, enable, disable, their Dockerfiles."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.actions import table
from svc.actions.access import ACCOUNT, ACCOUNTS, Access
from svc.domain import versions
from svc.domain.images import builds
from svc.domain.principal import Caller
from svc.domain.templates import bundles, import_export, templates
from svc.domain.templates import reviews as template_reviews
from svc.domain.versions import Expected
from svc.limits import BUNDLE_MAX
from svc.web import uploads
from svc.web.access import action, route
from svc.web.schemas.loading import load
from svc.web.schemas.pages import OwnerQuery
from svc.web.schemas.templates import (
    TEMPLATE,
    TEMPLATES,
    Dockerfile,
    DockerfileText,
    TemplateClone,
    TemplateCreate,
    TemplateEnable,
    TemplatePatch,
    TemplateQuery,
)

blueprint = Blueprint("templates", __name__)

OWNED = Access(ACCOUNT, pat=True, owner=True)
LOCATION = "/api/templates/{id}"
CREATE = TemplateCreate()


@route(blueprint, "GET", "/templates", OWNED, query=TemplateQuery(), answer=TEMPLATES)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's private templates and the global ones; administrators may name another owner."""
    return templates.page_of(caller, query["page"], query.get("owner"))


@action(
    blueprint, table.TEMPLATE_CREATE,
    body=CREATE, takes=uploads.TAR, answer=TEMPLATE, status=201, location=LOCATION,
)  # fmt: skip
def create(caller: Caller, body: dict[str, Any] | None) -> dict[str, Any]:
    """Create a template, enabled if it is private with a registry image; a tar is a bundle of your own."""
    if body is not None:
        return templates.create(caller, body)
    with uploads.received(uploads.TAR, BUNDLE_MAX) as (caller, file):
        bundle = bundles.read(file)
        checked = load(CREATE, import_export.own_create_request(bundle))
        return templates.create(caller, checked, bundle.context())


@route(
    blueprint, "GET", "/templates/<ref>", OWNED,
    query=OwnerQuery(), answer=TEMPLATE, version=versions.of_template,
)  # fmt: skip
def get(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """One template, by its id or name."""
    return templates.get(caller, ref, query.get("owner"))


@action(
    blueprint, table.TEMPLATE_EDIT,
    body=TemplatePatch(), answer=TEMPLATE, version=versions.of_template, if_match=True,
)  # fmt: skip
def edit(caller: Caller, ref: str, body: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Edit a template: a new revision unless only the name changes; a new image or Dockerfile disables it."""
    return templates.edit(caller, ref, body, expected=expected)


@action(blueprint, table.TEMPLATE_DELETE, status=204, if_match=True)
def delete(caller: Caller, ref: str, expected: Expected) -> None:
    """Delete a template that no workspace uses."""
    templates.delete(caller, ref, expected=expected)


@action(blueprint, table.TEMPLATE_ENABLE, body=TemplateEnable(), answer=TEMPLATE)
def enable(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Enable a template whose registries are on the allowlist and whose Dockerfile the caller has built."""
    return template_reviews.enable(caller, ref, body.get("revision"), is_built=builds.is_built)


@action(blueprint, table.TEMPLATE_DISABLE, answer=TEMPLATE)
def disable(caller: Caller, ref: str) -> dict[str, Any]:
    """Disable a template for new workspaces."""
    return template_reviews.disable(caller, ref)


@action(
    blueprint, table.TEMPLATE_CLONE,
    body=TemplateClone(), answer=TEMPLATE, status=201, location=LOCATION,
)  # fmt: skip
def clone(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Clone a template to a private one; with a Dockerfile the clone has its own context and is disabled."""
    return templates.clone(caller, ref, body["name"])


@route(
    blueprint, "GET", "/templates/<ref>/dockerfile", ACCOUNTS,
    answer=Dockerfile(), version=versions.of_dockerfile,
)  # fmt: skip
def dockerfile(caller: Caller, ref: str) -> dict[str, Any]:
    """The Dockerfile of a template."""
    return templates.dockerfile(caller, ref)


@route(
    blueprint, "PUT", "/templates/<ref>/dockerfile", ACCOUNTS,
    body=DockerfileText(), answer=TEMPLATE, if_match=True,
)  # fmt: skip
def set_dockerfile(caller: Caller, ref: str, body: dict[str, Any], expected: Expected) -> dict[str, Any]:
    """Replace the Dockerfile of a private template: a new revision, to be built before it is enabled."""
    return templates.set_dockerfile(caller, ref, body["dockerfile"], expected=expected)
