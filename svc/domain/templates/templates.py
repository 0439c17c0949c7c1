"""Templates: create, edit, clone, delete, and their Dockerfiles.

"An edit makes a new revision; workspaces keep theirs." A private registry template
is enabled at creation. One with a Dockerfile must be built first, a global one
reviewed by a superuser. A new image or Dockerfile disables either again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from svc.actions import table
from svc.actions.commands import command
from svc.db import faults
from svc.db.connect import database, write
from svc.db.turns import NoTurn, Turns
from svc.domain import names, operations, versions
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts, parts, records, revisions, rows, sources, variables
from svc.domain.templates.bundles import ContextFile
from svc.domain.templates.records import record
from svc.domain.templates.rows import EMPTY_SPEC, Source, Template
from svc.domain.versions import Expected
from svc.errors import (
    AdminOnly,
    Conflict,
    NotFound,
    OperationInProgress,
    QuotaExceeded,
    RootNotAllowed,
    TemplateDisabled,
)
from svc.host.ids import new_id, now
from svc.limits import TEMPLATES_PER_USER

EDIT_WAIT_S = 60.0  # of a user's call for those before it, of the same user and one of each other
_edits = Turns()

_RUNNING = (
    "SELECT o.id FROM operations o WHERE o.status IN ('queued', 'running') AND ?1 IN"
    f" (json_extract({operations.REQUEST}, '$.template_id'),"
    f" json_extract({operations.REQUEST}, '$.workspace.template'))"
)


@contextmanager
def editing(caller: Caller) -> Iterator[None]:
    """A change of templates, which parses and compares Dockerfiles and stores files in a long transaction.

    One at a time waits for the database, so that other requests wait for one and not for sixteen, and
    users change theirs by turns. Raises Maintenance.
    """
    try:
        with _edits.turn(EDIT_WAIT_S, caller.name):
            yield
    except NoTurn as error:
        raise faults.busy_now() from error


def page_of(caller: Caller, page: Page, owner: str | None = None) -> dict[str, Any]:
    """One page of the templates visible to the caller; `owner` is for administrators."""
    return records.page_of(caller, page, users.owner_id(caller, owner, "template"))


def get(caller: Caller, ref: str, owner: str | None = None) -> dict[str, Any]:
    """One template's record by id or name; raises NotFound."""
    return record(caller, rows.find(caller, ref, users.owner_id(caller, owner, "template")))


def usable(caller: Caller, ref: str) -> Template:
    """An enabled template; raises NotFound, TemplateDisabled."""
    template = rows.find(caller, ref)
    if template.status != "enabled":
        who = "an administrator enables it" if template.owner_id is None else "you can enable it"
        name = rows.reference(caller.user_id, template.id)
        steps = command(table.TEMPLATE_ENABLE, ref=name)
        if template.source_type == "dockerfile" and not template.local_only:  # must be built before
            who += " once you have built it" if template.owner_id is not None else ""
            steps = command(table.IMAGE_BUILD, ref=name).then(steps)
        raise TemplateDisabled(f"the template {template.name} is disabled; {who}", hint=steps)
    return template


def changeable(caller: Caller, ref: str) -> Template:
    """A template that the caller may change: their own, or any global one for administrators."""
    template = rows.find(caller, ref)
    if template.owner_id is None and not caller.administers:
        raise AdminOnly(f"the template {template.name} is global; only an administrator changes it")
    return template


# --- creating -------------------------------------------------------------------------


def create(caller: Caller, request: dict[str, Any], files: Iterable[ContextFile] = ()) -> dict[str, Any]:
    """Create a template from checked input and the files of its build context.

    Raises NameTaken, ValidationFailed, AdminOnly, RootNotAllowed, QuotaExceeded.
    """
    is_global = request.get("scope", "private") == "global"
    require_scope(caller, is_global=is_global)
    source = sources.new(request["source"], is_global=is_global, written_by=caller.user_id)
    owner_id, status = (None, "disabled") if is_global else (caller.user_id, _first_status(source))
    with editing(caller), write():
        source = source._replace(context=contexts.store(files))
        template_id = insert(owner_id, request, source, status=status)
        contexts.require_room(owner_id)
        audit.add(caller, table.TEMPLATE_CREATE, template_id, "ok", name=request["name"])
    return get(caller, template_id)


def require_scope(caller: Caller, *, is_global: bool) -> None:
    """Raise AdminOnly, RootNotAllowed for a caller who may not create a template of this scope."""
    if is_global and not caller.administers:
        raise AdminOnly("only an administrator creates global templates")
    if not is_global:
        _require_not_root(caller, 'root has no templates of its own; use "scope": "global"')


def clone(caller: Caller, ref: str, name: str) -> dict[str, Any]:
    """Copy a template to a private one; "a clone has its own editable build context".

    Secret values are copied from the caller's own template only.
    Raises NotFound, NameTaken, QuotaExceeded, RootNotAllowed.
    """
    _require_not_root(caller, "root has no templates of its own, so none to clone to")
    with editing(caller), write():
        template = rows.find(caller, ref)
        own = template.owner_id == caller.user_id
        source = revisions.source_of(template)._replace(local_only=False, bundle_digest=None)
        if source.dockerfile is not None:
            source = source._replace(type="dockerfile", image_ref=None)
        if not own:
            source = source._replace(written_by=None)
        request = template.spec | {"name": name, "env": variables.for_clone(template, own=own)}
        status = _first_status(source)
        clone_id = insert(caller.user_id, request, source, status=status, cloned_from=template.id)
        contexts.require_room(caller.user_id)  # shared files now count for the caller, too
        audit.add(caller, table.TEMPLATE_CLONE, clone_id, "ok", name=name, cloned_from=template.id)
    return get(caller, clone_id)


def insert(
    owner_id: int | None,
    request: dict[str, Any],
    source: Source,
    *,
    status: str,
    cloned_from: str | None = None,
) -> str:
    """Add a template's row and first revision and return its id; the caller audits and checks rights.

    `owner_id` None is global. `request` has `name` and keys of the document.
    Raises NameTaken, ValidationFailed, QuotaExceeded.
    """
    template_id, at = new_id("tpl"), now()
    spec, sealed = _document(template_id, request, None)
    with names.taking("template", request["name"]):
        require_room(owner_id)
        database.execute_sql(
            "INSERT INTO templates (id, owner_id, name, status, revision, reviewed_revision, managed,"
            " cloned_from, created_at, updated_at) VALUES (?, ?, ?, ?, 1, ?, ?, ?, ?, ?)",
            (
                template_id, owner_id, request["name"], status, 1 if status == "enabled" else None,
                int(owner_id is None), cloned_from, at, at,
            ),
        )  # fmt: skip
        revisions.add(template_id, 1, source, spec, sealed, at, previous=None)
    return template_id


def _first_status(source: Source) -> str:
    """The status of a new private template: disabled until its Dockerfile is built."""
    return "enabled" if source.dockerfile is None else "disabled"


def _require_not_root(caller: Caller, message: str) -> None:
    if caller.uid == 0:
        raise RootNotAllowed(message, hint="svc template create --help")


def require_room(owner_id: int | None) -> None:
    """Raise QuotaExceeded if the user has the maximum of templates; global ones have no limit."""
    if owner_id is None:
        return
    count = "SELECT count(*) FROM templates WHERE owner_id = ?"
    used = database.execute_sql(count, (owner_id,)).fetchone()[0]
    if used >= TEMPLATES_PER_USER:
        raise QuotaExceeded(
            f"you have {used} templates, the maximum of a user",
            hint="svc template delete --help",
            details={"resource": "templates", "limit": TEMPLATES_PER_USER, "used": used, "requested": 1},
        )


# --- changing -------------------------------------------------------------------------


def edit(caller: Caller, ref: str, patch: dict[str, Any], *, expected: Expected = None) -> dict[str, Any]:
    """Patch a template; any change but of its name makes a new revision.

    "A new Dockerfile or image_ref disables again." Raises as create does, ReadOnly and PreconditionFailed.
    """
    with editing(caller), names.taking("template", patch.get("name", "")):
        template = rows.find(caller, ref)
        if template.owner_id is None and "dockerfile" in patch.get("source", {}):
            sources.require_writable(caller, template)  # the same error for every caller
        template = changeable(caller, template.id)
        _require_version(caller, template, expected)
        source = sources.edited(caller, template, patch.get("source", {}))
        save(caller, template, source, patch, keys=sorted(patch))
    return get(caller, template.id)


def set_dockerfile(caller: Caller, ref: str, text: str, *, expected: Expected = None) -> dict[str, Any]:
    """Replace a private template's Dockerfile; `expected` are versions of the Dockerfile alone."""
    with editing(caller), write():
        template = rows.find(caller, ref)
        sources.require_writable(caller, template)
        record = {"dockerfile": template.dockerfile}
        name = rows.reference(caller.user_id, template.id)
        what = f"the Dockerfile of {template.name}"
        versions.require(expected, record, versions.DOCKERFILE, what, f"svc template dockerfile {name}")
        patch = {"source": {"dockerfile": text}}
        save(caller, template, sources.edited(caller, template, patch["source"]), patch, keys=["source"])
    return get(caller, template.id)


def _require_version(caller: Caller, template: Template, expected: Expected) -> None:
    """Raise PreconditionFailed for a template that was changed since the caller read it."""
    if expected is not None:
        hint = f"svc template get {rows.reference(caller.user_id, template.id)}"
        versions.require(expected, records.content(template), versions.TEMPLATE, template.name, hint)


def save(caller: Caller, template: Template, source: Source, patch: dict[str, Any], **detail: Any) -> None:
    """Save a change with its audit row, in the caller's write transaction, which has read the template."""
    revision, status = _revised(template, source, patch)
    reviewed = revision if status == "enabled" else template.reviewed_revision
    database.execute_sql(
        "UPDATE templates SET name = ?, status = ?, revision = ?, reviewed_revision = ?, updated_at = ?"
        " WHERE id = ?",
        (patch.get("name", template.name), status, revision, reviewed, now(), template.id),
    )
    audit.add(caller, table.TEMPLATE_EDIT, template.id, "ok", revision=revision, **detail)


def _revised(template: Template, source: Source, patch: dict[str, Any]) -> tuple[int, str]:
    """Add a revision if the patch changes anything; returns the present revision and status."""
    before = revisions.source_of(template)
    spec, sealed = _document(template.id, patch, template)
    if (source, spec, sealed) == (before, template.spec, template.sealed):
        return template.revision, template.status
    revision = template.revision + 1
    source = source._replace(bundle_digest=None)  # it differs from the bundle now
    revisions.add(template.id, revision, source, spec, sealed, now(), previous=template)
    return revision, "disabled" if revisions.is_another(source, before) else template.status


def _document(
    template_id: str, request: dict[str, Any], before: Template | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """A revision's document and encrypted values: the request merged into the previous ones, checked."""
    old, sealed = (before.spec, before.sealed) if before else (EMPTY_SPEC, {})
    spec = {key: request.get(key, old[key]) for key in EMPTY_SPEC}
    if "env" in request:
        spec["env"], sealed = variables.split(template_id, request["env"], before)
    parts.check(spec)
    parts.check_size(spec, sealed)
    return spec, sealed


def dockerfile(caller: Caller, ref: str) -> dict[str, Any]:
    """A template's Dockerfile, {dockerfile, read_only}; raises NotFound, also for a template without one."""
    template = built_from_dockerfile(caller, ref)
    return {"dockerfile": template.dockerfile, "read_only": template.owner_id is None}


def built_from_dockerfile(caller: Caller, ref: str) -> Template:
    """A template with a Dockerfile; raises NotFound, also for one without."""
    template = rows.find(caller, ref)
    if template.dockerfile is None:
        raise NotFound(
            f"{template.name} is made from a registry's image: it has no Dockerfile and no build context",
            hint=f"svc template get {rows.reference(caller.user_id, template.id)}",
        )
    return template


def delete(caller: Caller, ref: str, *, expected: Expected = None) -> None:
    """Delete a template without workspaces; raises Conflict, OperationInProgress, PreconditionFailed."""
    with write():
        template = changeable(caller, ref)
        _require_version(caller, template, expected)
        using = database.execute_sql(
            "SELECT count(*) FROM workspaces WHERE template_id = ?", (template.id,)
        ).fetchone()[0]
        if using:
            raise Conflict(
                f"{using} workspace{'s were' if using > 1 else ' was'} made from {template.name};"
                " it can be disabled instead",
                hint=command(table.TEMPLATE_DISABLE, ref=rows.reference(caller.user_id, template.id)),
                details={"workspaces": using},
            )
        if database.execute_sql(_RUNNING, (template.id,)).fetchone():
            raise OperationInProgress(
                f"an operation on {template.name} is in progress; delete the template when it has ended",
                hint=f"svc template delete {rows.reference(caller.user_id, template.id)}",
            )
        audit.add(caller, table.TEMPLATE_DELETE, template.id, "ok", name=template.name)  # which looks it up
        database.execute_sql("DELETE FROM templates WHERE id = ?", (template.id,))
        contexts.delete_unused()
    operations.wake()  # the worker checkpoints a large write-ahead log
