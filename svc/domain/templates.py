"""Templates backed by a registry image: create, edit, enable, disable, delete.

"An edit makes a new revision; workspaces keep theirs." A private registry
template is enabled at creation; a global one waits for a superuser, and again
after its image reference changed.
"""

from __future__ import annotations

import json
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import new_id, now
from svc.domain import audit, names, registries, resources, template_records, users
from svc.domain.callers import Caller
from svc.domain.pages import Page
from svc.domain.template_records import Template, record
from svc.errors import AdminOnly, Conflict, RootNotAllowed, TemplateDisabled

_SPEC_KEYS = ("description", "defaults", "limits", "command", "run_as", "env")
_EMPTY_SPEC: dict[str, Any] = {
    "description": "", "defaults": {}, "limits": {}, "command": None, "run_as": None, "env": [],
}  # fmt: skip


def page_of(caller: Caller, page: Page, owner: str | None = None) -> dict[str, Any]:
    """One page of the templates that the caller sees; `owner` is for administrators."""
    return template_records.page_of(caller, page, users.owner_id(caller, owner))


def get(caller: Caller, ref: str, owner: str | None = None) -> dict[str, Any]:
    """One template's record by id or name; raises NotFound."""
    return record(template_records.find(caller, ref, users.owner_id(caller, owner)))


def usable(caller: Caller, ref: str) -> Template:
    """The template to make something from; raises NotFound, TemplateDisabled."""
    template = template_records.find(caller, ref)
    if template.status != "enabled":
        word = "an administrator enables it" if template.owner_id is None else "you can enable it"
        raise TemplateDisabled(
            f"the template {template.name} is disabled; {word}",
            hint=f"svc template enable {template.id}",
        )
    return template


def create(caller: Caller, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make a template from checked input; raises NameTaken, ValidationFailed, AdminOnly, RootNotAllowed."""
    is_global = wanted.get("scope", "private") == "global"
    if is_global and not caller.administers:
        raise AdminOnly("only an administrator creates global templates")
    if not is_global and caller.uid == 0:
        raise RootNotAllowed('root has no templates of its own; say "scope": "global"')
    image_ref = registries.check_image_ref(wanted["source"]["image_ref"])
    spec = _spec(_EMPTY_SPEC, wanted)
    template_id, at = new_id("tpl"), now()
    with names.taking("template", wanted["name"]):
        database.execute_sql(
            "INSERT INTO templates (id, owner_id, name, status, revision, created_at, updated_at)"
            " VALUES (?, ?, ?, ?, 1, ?, ?)",
            (
                template_id,
                None if is_global else caller.user_id,
                wanted["name"],
                "disabled" if is_global else "enabled",
                at,
                at,
            ),
        )
        _add_revision(template_id, 1, image_ref, spec, at)
        audit.add(caller, "template.create", template_id, "ok", name=wanted["name"])
    return get(caller, template_id)


def edit(caller: Caller, ref: str, patch: dict[str, Any]) -> dict[str, Any]:
    """Patch a template; a change of more than its name is a new revision. Raises as create does."""
    with names.taking("template", patch.get("name", "")):
        template = _mine_to_change(caller, ref)
        image_ref = patch.get("source", {}).get("image_ref", template.image_ref)
        registries.check_image_ref(image_ref)
        spec, at = _spec(template.spec, patch), now()
        revision, status = template.revision, template.status
        if image_ref != template.image_ref and template.owner_id is None:
            status = "disabled"  # what was reviewed is not what would be pulled
        if image_ref != template.image_ref or spec != template.spec:
            revision += 1
            _add_revision(template.id, revision, image_ref, spec, at)
        database.execute_sql(
            "UPDATE templates SET name = ?, status = ?, revision = ?, updated_at = ? WHERE id = ?",
            (patch.get("name", template.name), status, revision, at, template.id),
        )
        audit.add(caller, "template.edit", template.id, "ok", revision=revision, keys=sorted(patch))
    return get(caller, template.id)


def enable(caller: Caller, ref: str) -> dict[str, Any]:
    """Open a template for use; raises RegistryNotAllowed for an off-list registry. Twice is fine."""
    template = _mine_to_change(caller, ref)
    registries.demand(template.image_ref)
    return _set_status(caller, template, "enabled")


def disable(caller: Caller, ref: str) -> dict[str, Any]:
    """Close a template for new workspaces; those that exist go on. Twice is fine."""
    return _set_status(caller, _mine_to_change(caller, ref), "disabled")


def delete(caller: Caller, ref: str) -> None:
    """Remove a template that no workspace was made from; raises Conflict otherwise."""
    with write():
        template = _mine_to_change(caller, ref)
        using = database.execute_sql(
            "SELECT count(*) FROM workspaces WHERE template_id = ?", (template.id,)
        ).fetchone()[0]
        if using:
            raise Conflict(
                f"{using} workspaces were made from {template.name}; it can be disabled instead",
                hint=f"svc template disable {template.id}",
                details={"workspaces": using},
            )
        database.execute_sql("DELETE FROM templates WHERE id = ?", (template.id,))
        audit.add(caller, "template.delete", template.id, "ok", name=template.name)


def _mine_to_change(caller: Caller, ref: str) -> Template:
    """The template if the caller may change it: one's own, or any global one for administrators."""
    template = template_records.find(caller, ref)
    if template.owner_id is None and not caller.administers:
        raise AdminOnly(f"the template {template.name} is global; only an administrator changes it")
    return template


def _set_status(caller: Caller, template: Template, status: str) -> dict[str, Any]:
    with write():
        changed = database.execute_sql(
            "UPDATE templates SET status = ?, updated_at = ?"
            " WHERE id = ? AND status <> ? AND revision = ?",  # only what was reviewed
            (status, now(), template.id, status, template.revision),
        ).rowcount
        if changed:
            audit.add(caller, f"template.{status.removesuffix('d')}", template.id, "ok")
    return get(caller, template.id)


def _spec(before: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The revision's document: what was asked over what was, checked as a whole."""
    spec = {key: wanted.get(key, before[key]) for key in _SPEC_KEYS}
    resources.check_template(spec["defaults"], spec["limits"])
    return spec


def _add_revision(template_id: str, revision: int, image_ref: str, spec: dict[str, Any], at: str) -> None:
    database.execute_sql(
        "INSERT INTO template_revisions"
        " (template_id, revision, source_type, image_ref, spec_json, created_at)"
        " VALUES (?, ?, 'registry', ?, ?, ?)",
        (template_id, revision, image_ref, json.dumps(spec), at),
    )
