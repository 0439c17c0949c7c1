"""Templates: create, edit, clone, delete, and their Dockerfiles.

"An edit makes a new revision; workspaces keep theirs." A private registry
template is enabled at creation; one with a Dockerfile is built first, a global
one waits for a superuser, and each waits again after another image or Dockerfile.
"""

from __future__ import annotations

import threading
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import new_id, now
from svc.domain import audit, names, operations
from svc.domain.accounts import users
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts, parts, records, revisions, rows, sources, variables
from svc.domain.templates.records import record
from svc.domain.templates.rows import EMPTY_SPEC, Source, Template
from svc.errors import (
    AdminOnly,
    Conflict,
    NotFound,
    OperationInProgress,
    QuotaExceeded,
    RootNotAllowed,
    TemplateDisabled,
)
from svc.limits import TEMPLATES_PER_USER

# Reading and comparing Dockerfiles, and taking files in, is long for a write: who does many at a time
# stands here, so that everybody else has one of them before them at the database, not sixteen.
in_line = threading.Lock()

_UNDER_WAY = (
    "SELECT id FROM operations WHERE status IN ('queued', 'running') AND ?1 IN"
    " (json_extract(request_json, '$.template_id'), json_extract(request_json, '$.workspace.template'))"
)


def page_of(caller: Caller, page: Page, owner: str | None = None) -> dict[str, Any]:
    """One page of the templates that the caller sees; `owner` is for administrators."""
    return records.page_of(caller, page, users.owner_id(caller, owner))


def get(caller: Caller, ref: str, owner: str | None = None) -> dict[str, Any]:
    """One template's record by id or name; raises NotFound."""
    return record(rows.find(caller, ref, users.owner_id(caller, owner)))


def usable(caller: Caller, ref: str) -> Template:
    """The template to make something from; raises NotFound, TemplateDisabled."""
    template = rows.find(caller, ref)
    if template.status != "enabled":
        word = "an administrator enables it" if template.owner_id is None else "you can enable it"
        raise TemplateDisabled(
            f"the template {template.name} is disabled; {word}",
            hint=f"svc template enable {template.id}",
        )
    return template


def changeable(caller: Caller, ref: str) -> Template:
    """The template if the caller may change it: one's own, or any global one for administrators."""
    template = rows.find(caller, ref)
    if template.owner_id is None and not caller.administers:
        raise AdminOnly(f"the template {template.name} is global; only an administrator changes it")
    return template


# --- making ---------------------------------------------------------------------------


def create(caller: Caller, wanted: dict[str, Any]) -> dict[str, Any]:
    """Make a template from checked input; raises NameTaken, ValidationFailed, AdminOnly, RootNotAllowed."""
    is_global = wanted.get("scope", "private") == "global"
    if is_global and not caller.administers:
        raise AdminOnly("only an administrator creates global templates")
    if not is_global:
        _require_not_root(caller, 'root has no templates of its own; say "scope": "global"')
    source = sources.made(wanted["source"], is_global=is_global, written_by=caller.user_id)
    owner_id, status = (None, "disabled") if is_global else (caller.user_id, _first_status(source))
    with in_line, write():
        template_id = insert(owner_id, wanted, source, status=status)
        audit.add(caller, "template.create", template_id, "ok", name=wanted["name"])
    return get(caller, template_id)


def clone(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Make a private template like another; "a clone has its own editable build context".

    The values of secret variables come along from one's own template only.
    Raises NotFound, NameTaken, QuotaExceeded, RootNotAllowed.
    """
    _require_not_root(caller, "root has no templates of its own, so none to clone to")
    with in_line, write():
        template = rows.find(caller, ref)
        own = template.owner_id == caller.user_id
        source = revisions.source_of(template)._replace(local_only=False, bundle_digest=None)
        if source.dockerfile is not None:
            source = source._replace(type="dockerfile", image_ref=None)
        if not own:
            source = source._replace(written_by=None)
        wanted = template.spec | {"name": name, "env": variables.copied(template, own=own)}
        status = _first_status(source)
        clone_id = insert(caller.user_id, wanted, source, status=status, cloned_from=template.id)
        contexts.require_room(caller.user_id, 0)  # what it shares with others is the caller's now, too
        audit.add(caller, "template.clone", clone_id, "ok", name=name, cloned_from=template.id)
    return get(caller, clone_id)


def insert(
    owner_id: int | None,
    wanted: dict[str, Any],
    source: Source,
    *,
    status: str,
    cloned_from: str | None = None,
) -> str:
    """Add a template's row with its first revision and return its id; the caller audits and checks rights.

    `owner_id` None is global. `wanted` has `name` and keys of the document. Raises
    NameTaken, ValidationFailed, QuotaExceeded.
    """
    template_id, at = new_id("tpl"), now()
    spec, sealed = _document(template_id, wanted, None)
    with names.taking("template", wanted["name"]):
        require_room(owner_id)
        database.execute_sql(
            "INSERT INTO templates (id, owner_id, name, status, revision, reviewed_revision, managed,"
            " cloned_from, created_at, updated_at) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
            (
                template_id, owner_id, wanted["name"], status, 1 if status == "enabled" else None,
                int(owner_id is None), cloned_from, at, at,
            ),
        )  # fmt: skip
        revisions.add(template_id, 1, source, spec, sealed, at, previous=None)
    return template_id


def _first_status(source: Source) -> str:
    """A private template's, before anybody has decided: what has to be built waits for that."""
    return "enabled" if source.dockerfile is None else "disabled"


def _require_not_root(caller: Caller, message: str) -> None:
    if caller.uid == 0:
        raise RootNotAllowed(message, hint="svc template create --help")


def require_room(owner_id: int | None) -> None:
    """Raise QuotaExceeded where a user has as many templates as one may; global ones have no limit."""
    if owner_id is None:
        return
    used = database.execute_sql("SELECT count(*) FROM templates WHERE owner_id = ?", (owner_id,)).fetchone()[
        0
    ]
    if used >= TEMPLATES_PER_USER:
        raise QuotaExceeded(
            f"you have {used} templates, as many as a user may",
            hint="svc template delete --help",
            details={"resource": "templates", "limit": TEMPLATES_PER_USER, "used": used, "requested": 1},
        )


# --- changing -------------------------------------------------------------------------


def edit(caller: Caller, ref: str, patch: dict[str, Any]) -> dict[str, Any]:
    """Patch a template; a change of more than its name is a new revision.

    "A new Dockerfile or image_ref disables again." Raises as create does, and ReadOnly.
    """
    with in_line, names.taking("template", patch.get("name", "")):
        template = rows.find(caller, ref)
        if template.owner_id is None and "dockerfile" in patch.get("source", {}):
            sources.require_writable(template)  # to everybody, before they are asked who they are
        template = changeable(caller, template.id)
        source = sources.edited(caller, template, patch.get("source", {}))
        revision, status = _revised(template, source, patch)
        reviewed = revision if status == "enabled" else template.reviewed_revision
        database.execute_sql(
            "UPDATE templates SET name = ?, status = ?, revision = ?, reviewed_revision = ?, updated_at = ?"
            " WHERE id = ?",
            (patch.get("name", template.name), status, revision, reviewed, now(), template.id),
        )
        audit.add(caller, "template.edit", template.id, "ok", revision=revision, keys=sorted(patch))
    return get(caller, template.id)


def _revised(template: Template, source: Source, patch: dict[str, Any]) -> tuple[int, str]:
    """Add the revision that a patch asks for, if it changes anything; the number and status from then on."""
    before = revisions.source_of(template)
    spec, sealed = _document(template.id, patch, template)
    if (source, spec, sealed) == (before, template.spec, template.sealed):
        return template.revision, template.status
    revision = template.revision + 1
    source = source._replace(bundle_digest=None)  # it is no longer what came in that bundle
    revisions.add(template.id, revision, source, spec, sealed, now(), previous=template)
    return revision, "disabled" if revisions.is_another(source, before) else template.status


def _document(
    template_id: str, wanted: dict[str, Any], before: Template | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """A revision's document and its sealed values: what was asked over what was, checked as a whole."""
    old, sealed = (before.spec, before.sealed) if before else (EMPTY_SPEC, {})
    spec = {key: wanted.get(key, old[key]) for key in EMPTY_SPEC}
    if "env" in wanted:
        spec["env"], sealed = variables.split(template_id, wanted["env"], before)
    parts.check(spec)
    parts.check_size(spec, sealed)
    return spec, sealed


def dockerfile(caller: Caller, ref: str) -> dict[str, Any]:
    """A template's Dockerfile, {dockerfile, read_only}; raises NotFound, also where there is none."""
    template = rows.find(caller, ref)
    if template.dockerfile is None:
        raise NotFound(
            f"{template.name} is made from a registry's image and has no Dockerfile",
            hint=f"svc template get {template.id}",
        )
    return {"dockerfile": template.dockerfile, "read_only": template.owner_id is None}


def delete(caller: Caller, ref: str) -> None:
    """Remove a template that no workspace was made from; raises Conflict, OperationInProgress otherwise."""
    with write():
        template = changeable(caller, ref)
        using = database.execute_sql(
            "SELECT count(*) FROM workspaces WHERE template_id = ?", (template.id,)
        ).fetchone()[0]
        if using:
            raise Conflict(
                f"{using} workspace{'s were' if using > 1 else ' was'} made from {template.name};"
                " it can be disabled instead",
                hint=f"svc template disable {template.id}",
                details={"workspaces": using},
            )
        if database.execute_sql(_UNDER_WAY, (template.id,)).fetchone():
            raise OperationInProgress(
                f"an operation on {template.name} is under way; it can be deleted when that has ended",
                hint=f"svc template delete {template.id}",
            )
        database.execute_sql("DELETE FROM templates WHERE id = ?", (template.id,))
        contexts.sweep()
        audit.add(caller, "template.delete", template.id, "ok", name=template.name)
    operations.wake()  # the worker folds a large log into the file: SQLite may write over what went
