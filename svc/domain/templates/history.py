"""A template's earlier revisions: what they were, how many workspaces use them, and what differs.

The owner sees all that are kept, administrators those of global templates too. Others see the
present revision of a global template and those of their own workspaces: what never was enabled
is not theirs to read. Secret values are in none of it.
"""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain import pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import contexts, diffs, findings, records, revisions, rows
from svc.domain.templates.rows import Template
from svc.errors import NotFound

_WORKSPACES = (
    "(SELECT count(*) FROM workspaces w WHERE w.template_id = r.template_id"
    " AND w.template_revision = r.revision)"
)
_SORT = {"revision": "r.revision", "created_at": "r.created_at"}


def page_of(caller: Caller, ref: str, page: Page) -> dict[str, Any]:
    """One page of the kept revisions, by default the newest first; raises NotFound."""
    template = rows.find(caller, ref)
    found, values = pages.matching(page, ("r.image_ref",))
    return pages.select(
        page,
        f"r.revision, r.created_at, r.source_type, r.image_ref, {_WORKSPACES}",
        f"FROM template_revisions r WHERE {rows.VISIBLE_REVISION} AND {found}",
        (*rows.sight(caller, template), *values),
        pages.order_by(page, _SORT, "-revision", "r.revision"),
        lambda row: _record(template, row),
    )


def _record(template: Template, row: tuple[Any, ...]) -> dict[str, Any]:
    revision, created_at, source_type, image_ref, workspaces = row
    return {
        "revision": revision,
        "created_at": created_at,
        "source_type": source_type,
        "image_ref": image_ref,
        "workspaces": workspaces,
        "is_current": revision == template.revision,
        "is_reviewed": revision == template.reviewed_revision,
    }


def get(caller: Caller, ref: str, revision: int) -> dict[str, Any]:
    """One revision: its document, its Dockerfile and how many workspaces use it; raises NotFound."""
    present = rows.find(caller, ref)
    template = _at(caller, present, revision)
    row = database.execute_sql(
        f"SELECT r.revision, r.created_at, r.source_type, r.image_ref, {_WORKSPACES}"
        " FROM template_revisions r WHERE r.template_id = ? AND r.revision = ?",
        (template.id, revision),
    ).fetchone()
    content = records.content(template)
    parts = {key: value for key, value in content.items() if key in _PARTS}
    return _record(present, row) | parts | {"dockerfile": template.dockerfile}


# Of a revision itself; the others are the template's, whatever the revision is.
_PARTS = (
    "source", "description", "defaults", "limits", "gpu", "command", "run_as", "env", "launchers", "ports",
    "mounts", "idle", "network",
)  # fmt: skip


def at(caller: Caller, ref: str, revision: int) -> Template:
    """A template at a revision that the caller may see; raises NotFound."""
    return _at(caller, rows.find(caller, ref), revision)


def _at(caller: Caller, template: Template, revision: int) -> Template:
    """The template at a revision that the caller may see; raises NotFound."""
    if not rows.sees(caller, template, revision):
        name = rows.reference(caller.user_id, template.id)
        raise NotFound(
            f"{template.name} has no revision {revision}, or no longer", hint=f"svc template revisions {name}"
        )
    return rows.at_revision(template.id, revision)


def diff(caller: Caller, ref: str, before: int | None, after: int | None) -> dict[str, Any]:
    """What differs between two revisions; by default the present one and the one before it.

    {before, after, changed, fields, dockerfile, context}: the names of the changed parts, the values of each
    changed field, and bounded unified diffs of the Dockerfile and of the context's listing. Raises NotFound.
    """
    present = rows.find(caller, ref)
    new = _at(caller, present, present.revision if after is None else after)
    old = _at(caller, present, _previous(caller, present, new.revision) if before is None else before)
    return {"before": old.revision, "after": new.revision} | difference(old, new)


def _previous(caller: Caller, template: Template, revision: int) -> int:
    """The newest visible revision before this one; this one itself where there is none."""
    row = database.execute_sql(
        f"SELECT max(r.revision) FROM template_revisions r WHERE {rows.VISIBLE_REVISION} AND r.revision < ?5",
        (*rows.sight(caller, template), revision),
    ).fetchone()
    return revision if row[0] is None else int(row[0])


def difference(old: Template, new: Template) -> dict[str, Any]:
    """The parts of two revisions of a template that differ: {changed, fields, dockerfile, context}."""
    before, after = findings.documents(revisions.content_of(old), revisions.content_of(new))
    keys = [key for key in after if before[key] != after[key]]
    dockerfile = diffs.unified("Dockerfile", old.dockerfile or "", new.dockerfile or "")
    listings: list[str] = []
    if old.context != new.context:
        listings = diffs.unified(
            "build context", contexts.listing(old.context), contexts.listing(new.context)
        )
    return {
        "changed": keys + ["Dockerfile"] * bool(dockerfile) + ["build context"] * bool(listings),
        "fields": [{"field": key, "before": before[key], "after": after[key]} for key in keys],
        "dockerfile": diffs.bounded(dockerfile) if dockerfile else None,
        "context": diffs.bounded(listings) if listings else None,
    }
