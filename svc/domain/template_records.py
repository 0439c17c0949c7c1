"""Templates as rows and as records: the SQL of both, and who sees which.

"Global (managed, visible to everyone after review) or private (owned by one
user)"; others do not see disabled global ones.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.domain import pages, registries
from svc.domain.callers import Caller
from svc.domain.pages import Page
from svc.errors import NotFound

# Visible to the caller: ?1 is the user whose private ones count, ?2 whether disabled global ones do too.
VISIBLE = "(t.owner_id = ?1 OR (t.owner_id IS NULL AND (t.status = 'enabled' OR ?2)))"
_COLUMNS = (
    "t.id, t.name, t.owner_id, u.name, t.status, t.managed, t.cloned_from, t.revision, r.source_type,"
    " r.image_ref, r.spec_json, t.created_at, t.updated_at"
)
_FROM = (
    "FROM templates t JOIN template_revisions r ON r.template_id = t.id AND r.revision = {revision}"
    " LEFT JOIN users u ON u.id = t.owner_id"
)
_SORT = {"name": "t.name", "created_at": "t.created_at", "updated_at": "t.updated_at", "status": "t.status"}


class Template(NamedTuple):
    """A template at one revision."""

    id: str
    name: str
    owner_id: int | None
    owner: str | None
    status: str
    managed: int
    cloned_from: str | None
    revision: int
    source_type: str
    image_ref: str
    spec_json: str
    created_at: str
    updated_at: str

    @property
    def spec(self) -> dict[str, Any]:
        """The revision's own words: description, defaults, limits, command, run_as, env."""
        spec: dict[str, Any] = json.loads(self.spec_json)
        return spec

    @property
    def scope(self) -> str:
        """global or private."""
        return "global" if self.owner_id is None else "private"


def find(caller: Caller, ref: str, owner_id: int | None = None) -> Template:
    """The template of that id, or of that name (one's own before a global one); raises NotFound."""
    row = database.execute_sql(
        f"SELECT {_COLUMNS} {_FROM.format(revision='t.revision')}"
        f" WHERE {VISIBLE} AND (t.id = ?3 OR t.name = ?3)"
        " ORDER BY t.id = ?3 DESC, t.owner_id IS NULL LIMIT 1",
        (owner_id or caller.user_id, caller.administers, ref),
    ).fetchone()
    if row is None:
        raise NotFound(f"no template {ref}", hint="svc template list")
    return Template(*row)


def at_revision(template_id: str, revision: int) -> Template:
    """The template as it was at a revision; workspaces keep theirs. Raises NotFound."""
    row = database.execute_sql(
        f"SELECT {_COLUMNS} {_FROM.format(revision='?2')} WHERE t.id = ?1", (template_id, revision)
    ).fetchone()
    if row is None:
        raise NotFound(f"no template {template_id}")
    return Template(*row)._replace(revision=revision)


def record(template: Template) -> dict[str, Any]:
    """The template as the API shows it."""
    spec = template.spec
    return {
        "id": template.id,
        "name": template.name,
        "description": spec["description"],
        "scope": template.scope,
        "owner": template.owner,
        "status": template.status,
        "source": {"type": template.source_type, "image_ref": template.image_ref},
        "managed": bool(template.managed),
        "cloned_from": template.cloned_from,
        "revision": template.revision,
        "findings": registries.findings(template.image_ref),
        "defaults": spec["defaults"],
        "limits": spec["limits"],
        "command": spec["command"],
        "run_as": spec["run_as"],
        "launchers": [],
        "ports": [],
        "env": spec["env"],
        "created_at": template.created_at,
        "updated_at": template.updated_at,
    }


def page_of(caller: Caller, page: Page, owner_id: int | None = None) -> dict[str, Any]:
    """The templates that the caller sees (or an administrator sees of an owner), one page."""
    found, values = pages.matching(page, ("t.name",))
    status, statuses = pages.with_status(page, "t.status")
    order = pages.order_by(page, _SORT, "name", "t.id")
    where = f"WHERE {VISIBLE} AND {found} AND {status}"
    given = (owner_id or caller.user_id, caller.administers, *values, *statuses)
    total = database.execute_sql(f"SELECT count(*) FROM templates t {where}", given).fetchone()[0]
    rows = database.execute_sql(
        f"SELECT {_COLUMNS} {_FROM.format(revision='t.revision')} {where} ORDER BY {order} LIMIT ? OFFSET ?",
        (*given, page.limit, page.offset),
    )
    return pages.envelope(page, [record(Template(*row)) for row in rows], total)
