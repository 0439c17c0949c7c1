"""Templates as rows: one at a revision, its source, and its visibility.

"Global (managed, visible to everyone after review) or private (owned by one
user)"; others do not see disabled global ones.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.domain import pages
from svc.domain.principal import Caller
from svc.errors import NotFound, TemplateDamaged

# Visible to the caller: ?1 is the user whose private ones count, ?2 whether disabled global ones do too.
VISIBLE = "(t.owner_id = ?1 OR (t.owner_id IS NULL AND (t.status = 'enabled' OR ?2)))"
# A revision r that the caller may read, by the parameters of `sight`: what was never enabled is not for all.
VISIBLE_REVISION = (
    "r.template_id = ?1 AND (?2 OR r.revision = ?3 OR EXISTS (SELECT 1 FROM workspaces w"
    " WHERE w.template_id = ?1 AND w.template_revision = r.revision AND w.owner_id = ?4))"
)
COLUMNS = (
    "t.id, t.name, t.owner_id, u.name, t.status, t.managed, t.cloned_from, t.revision, t.reviewed_revision,"
    " r.source_type, r.image_ref, r.dockerfile, r.context, r.local_only, r.written_by, r.bundle_digest,"
    " r.spec_json, r.sealed_json, r.images_json, r.findings_json, t.created_at, t.updated_at"
)
FROM = (
    "FROM templates t JOIN template_revisions r ON r.template_id = t.id AND r.revision = {revision}"
    " LEFT JOIN users u ON u.id = t.owner_id"
)
# The document of a revision; those of earlier releases lack the later keys.
EMPTY_SPEC: dict[str, Any] = {
    "description": "", "defaults": {}, "limits": {}, "gpu": {}, "command": None, "run_as": None, "env": [],
    "launchers": [], "ports": [], "mounts": [], "idle": {}, "network": None,
}  # fmt: skip
# The document of the revision r, for what SQLite itself takes out of it.
SPEC = pages.stored("r.spec_json", "'{}'")


class Source(NamedTuple):
    """Where a revision's image comes from; a dockerfile source has no `image_ref`.

    `written_by` is the user who wrote the Dockerfile, None for an imported one;
    `bundle_digest` is that of the bundle it was imported from.
    """

    type: str
    image_ref: str | None = None
    dockerfile: str | None = None
    context: str | None = None
    local_only: bool = False
    written_by: int | None = None
    bundle_digest: str | None = None


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
    reviewed_revision: int | None
    source_type: str
    image_ref: str
    dockerfile: str | None
    context: str | None
    local_only: int
    written_by: int | None
    bundle_digest: str | None
    spec_json: str
    sealed_json: str
    images_json: str
    findings_json: str
    created_at: str
    updated_at: str

    @property
    def spec(self) -> dict[str, Any]:
        """The revision's document with every key of EMPTY_SPEC; secret variables have no value."""
        spec: dict[str, Any] = EMPTY_SPEC | self._stored("spec_json", {})
        for key, empty in EMPTY_SPEC.items():
            self._require(key, spec[key], empty)
        return spec

    @property
    def sealed(self) -> dict[str, str]:
        """The encrypted values of secret variables."""
        sealed: dict[str, str] = self._stored("sealed_json", {})
        return sealed

    @property
    def images(self) -> list[str]:
        """The images that a build pulls; none without a Dockerfile."""
        images: list[str] = self._stored("images_json", [""])
        return images

    @property
    def findings(self) -> list[dict[str, Any]]:
        """The static findings for a review; those of earlier releases name neither file nor line."""
        return [{"file": None, "line": None} | one for one in self._stored("findings_json", [])]

    def without_documents(self) -> Template:
        """The revision with nothing in any of its documents, in place of a damaged one."""
        return self._replace(spec_json="{}", sealed_json="{}", images_json="[]", findings_json="[]")

    def _stored(self, column: str, like: dict[str, Any] | list[Any]) -> Any:
        """The column's JSON, of this kind; raises TemplateDamaged."""
        try:
            found = json.loads(getattr(self, column))
        except (ValueError, RecursionError):
            found = None
        self._require(column, found, like)
        return found

    def _require(self, place: str, found: Any, like: Any) -> None:
        """Raise TemplateDamaged unless it is like that; a list has objects, or items like its first."""
        item = type(like[0]) if isinstance(like, list) and like else dict
        is_like = like is None or isinstance(found, type(like))
        if not is_like or (isinstance(like, list) and not all(isinstance(one, item) for one in found)):
            raise TemplateDamaged(
                f"revision {self.revision} of the template {self.name} is damaged in the database ({place})",
                hint=f"svc template revisions {self.id}",
            )

    @property
    def scope(self) -> str:
        """global or private."""
        return "global" if self.owner_id is None else "private"


def find(caller: Caller, ref: str, owner_id: int | None = None) -> Template:
    """The template by id, or by name (the caller's own before a global one); raises NotFound."""
    row = database.execute_sql(
        f"SELECT {COLUMNS} {FROM.format(revision='t.revision')}"
        f" WHERE {VISIBLE} AND (t.id = ?3 OR t.name = ?3)"
        " ORDER BY t.id = ?3 DESC, t.owner_id IS NULL LIMIT 1",
        (owner_id or caller.user_id, caller.administers, ref),
    ).fetchone()
    if row is None:
        raise NotFound(f"no template {ref}", hint="svc template list")
    return Template(*row)


def sight(caller: Caller, template: Template) -> tuple[Any, ...]:
    """The parameters of VISIBLE_REVISION."""
    sees_all = template.owner_id is not None or caller.administers
    return template.id, int(sees_all), template.revision, caller.user_id


def sees(caller: Caller, template: Template, revision: int) -> bool:
    """Whether the caller, who sees the template at its present revision, may read a kept revision of it."""
    row = database.execute_sql(
        f"SELECT 1 FROM template_revisions r WHERE {VISIBLE_REVISION} AND r.revision = ?5",
        (*sight(caller, template), revision),
    ).fetchone()
    return row is not None


def reference(user_id: int, template_id: str) -> str:
    """What this user calls a template on a command line: its name where that means no other, else its id."""
    row = database.execute_sql(
        "SELECT t.name FROM templates t WHERE t.id = ?1 AND (t.owner_id IS NULL OR t.owner_id = ?2)"
        " AND 1 = (SELECT count(*) FROM templates o"
        " WHERE t.name IN (o.name, o.id) AND (o.owner_id IS NULL OR o.owner_id = ?2))",
        (template_id, user_id),
    ).fetchone()
    return str(row[0]) if row else template_id


def at_revision(template_id: str, revision: int) -> Template:
    """The template at an earlier revision; raises NotFound."""
    row = database.execute_sql(
        f"SELECT {COLUMNS} {FROM.format(revision='?2')} WHERE t.id = ?1", (template_id, revision)
    ).fetchone()
    if row is None:
        raise NotFound(f"no template {template_id}")
    return Template(*row)._replace(revision=revision)
