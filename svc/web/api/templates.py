"""Templates: list, create, get, edit, delete, enable, disable."""

from __future__ import annotations

from typing import Any

from flask import Blueprint

from svc.domain import templates
from svc.domain.callers import Caller
from svc.web.access import ACCOUNT, Access, reserve, route
from svc.web.schemas.pages import OwnerQuery
from svc.web.schemas.templates import TEMPLATE, TEMPLATES, TemplateCreate, TemplatePatch, TemplateQuery

blueprint = Blueprint("templates", __name__)

ANY = Access(ACCOUNT, pat=True)
OWNED = Access(ACCOUNT, pat=True, owner=True)
LOCATION = "/api/templates/{id}"


@route(blueprint, "GET", "/templates", OWNED, query=TemplateQuery(), answer=TEMPLATES)
def list_(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The caller's private templates and the global ones; administrators may name another owner."""
    return templates.page_of(caller, query["page"], query.get("owner"))


@route(
    blueprint, "POST", "/templates", ANY,
    body=TemplateCreate(), answer=TEMPLATE, status=201, location=LOCATION,
)  # fmt: skip
def create(caller: Caller, body: dict[str, Any]) -> dict[str, Any]:
    """Create a template backed by a registry image: a private one is enabled, a global one disabled."""
    return templates.create(caller, body)


@route(blueprint, "GET", "/templates/<ref>", OWNED, query=OwnerQuery(), answer=TEMPLATE)
def get(caller: Caller, ref: str, query: dict[str, Any]) -> dict[str, Any]:
    """One template, by its id or name."""
    return templates.get(caller, ref, query.get("owner"))


@route(blueprint, "PATCH", "/templates/<ref>", ANY, body=TemplatePatch(), answer=TEMPLATE)
def edit(caller: Caller, ref: str, body: dict[str, Any]) -> dict[str, Any]:
    """Edit a template: more than a new name makes a new revision; workspaces keep theirs."""
    return templates.edit(caller, ref, body)


@route(blueprint, "DELETE", "/templates/<ref>", ANY, status=204)
def delete(caller: Caller, ref: str) -> None:
    """Delete a template that no workspace was made from."""
    templates.delete(caller, ref)


@route(blueprint, "POST", "/templates/<ref>/enable", ANY, answer=TEMPLATE)
def enable(caller: Caller, ref: str) -> dict[str, Any]:
    """Enable a template; refused while its registry is not on the allowlist."""
    return templates.enable(caller, ref)


@route(blueprint, "POST", "/templates/<ref>/disable", ANY, answer=TEMPLATE)
def disable(caller: Caller, ref: str) -> dict[str, Any]:
    """Disable a template for new workspaces."""
    return templates.disable(caller, ref)


reserve(blueprint, "POST", "/templates/<ref>/clone", ANY, "Cloning a template")
reserve(blueprint, "GET", "/templates/<ref>/dockerfile", ANY, "A template's Dockerfile")
reserve(blueprint, "PUT", "/templates/<ref>/dockerfile", ANY, "Replacing a clone's Dockerfile")
reserve(blueprint, "GET", "/templates/<ref>/export", ANY, "Exporting a template")
reserve(blueprint, "POST", "/templates/import", ANY, "Importing a template")
