"""Images as records of the API."""

from __future__ import annotations

import json
from typing import Any

from svc.db.connect import database
from svc.domain import image_users, pages
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates.revisions import BUILT
from svc.domain.templates.rows import SPEC, VISIBLE, Template

# "pulling" and "building" count only while the owner has a running operation: a crash leaves such rows.
STATUS = (
    "CASE WHEN i.status IN ('pulling', 'building') AND NOT EXISTS (SELECT 1 FROM operations o"
    " WHERE o.owner_id = i.owner_id AND o.status IN ('queued', 'running')) THEN 'missing'"
    " ELSE coalesce(i.status, 'missing') END"
)
# Whether the workspace w needs the image i of its reference: a container needs the one that it was made from,
# which may be older.
USES = "(w.container_id IS NULL OR coalesce(w.image_digest = i.digest, 1))"
# The visible templates (?1, ?2 as in VISIBLE) with the reference of each: "per template, per user".
_OF_TEMPLATES = f"""
    SELECT r.image_ref, t.id AS template_id, t.name AS template_name, t.owner_id AS template_owner,
        json_extract({SPEC}, '$.run_as') AS run_as FROM templates t
        JOIN template_revisions r ON r.template_id = t.id AND r.revision = t.revision WHERE {VISIBLE}"""
_OF_CALLER = """
    SELECT w.image_ref FROM workspaces w WHERE w.owner_id = ?1
    UNION SELECT i.image_ref FROM images i WHERE i.owner_id = ?1
        AND i.status NOT IN ('missing', 'failed')"""  # rows without an image in the store
# Every reference relevant to the caller: once for each template that has it, or once without a template.
_REFERENCES = f"""{_OF_TEMPLATES}
    UNION ALL SELECT image_ref, NULL, NULL, NULL, NULL FROM ({_OF_CALLER})
        WHERE image_ref NOT IN (SELECT image_ref FROM ({_OF_TEMPLATES}))"""
_WARNINGS = image_users.warnings_sql(
    run_as="f.run_as",
    template="f.template_id",
    owner="?1",
    is_own="(f.template_owner = ?1 OR (f.template_owner IS NULL AND ?2))",
)
_RECORD = f"""json_object(
    'template', iif(f.template_id IS NULL, NULL, json_object('id', f.template_id, 'name', f.template_name)),
    'ref', f.image_ref, 'status', {STATUS}, 'digest', i.digest, 'size_bytes', i.size_bytes, 'error', i.error,
    'used_by', json((SELECT json_group_array(w.name) FROM workspaces w
        WHERE w.owner_id = ?1 AND w.image_ref = f.image_ref AND {USES})),
    'operation', json((SELECT json_object('id', o.id, 'kind', o.kind, 'status', o.status, 'phase', o.phase,
            'progress', json({pages.stored("o.progress_json", "'{}'")})) FROM operations o
        WHERE o.owner_id = ?1 AND o.subject_type = 'image' AND o.subject_id = f.image_ref
            AND o.status IN ('queued', 'running') ORDER BY o.created_at LIMIT 1)),
    'warnings', iif(f.template_id IS NULL, json('[]'), json({_WARNINGS})),
    'updated_at', i.updated_at)"""
_FROM = f"""
    FROM ({_REFERENCES}) f
    LEFT JOIN images i ON i.owner_id = ?1 AND i.image_ref = f.image_ref"""
_SORT = {"ref": "f.image_ref", "updated_at": "i.updated_at", "size_bytes": "i.size_bytes"}


def whole(image_ref: str) -> str:
    """A reference as the store lists it: with its tag, or with a digest and no tag."""
    name, at, digest = image_ref.partition("@")
    before, colon, tag = name.rpartition(":")
    if at:
        return f"{before if colon and '/' not in tag else name}@{digest}"
    return name if colon and "/" not in tag else f"{name}:latest"


def verb(image_ref: str) -> str:
    """The command of `svc image` that gets an image: `pull` or `build`."""
    return "build" if image_ref.startswith(BUILT) else "pull"


def digest_of(owner_id: int, image_ref: str) -> str | None:
    """The digest of the image that the owner's store last had for this reference; None without one."""
    row = database.execute_sql(
        "SELECT digest FROM images WHERE owner_id = ? AND image_ref = ? AND status = 'ready'",
        (owner_id, image_ref),
    ).fetchone()
    return row[0] if row else None


def used_by(caller: Caller, image_ref: str) -> list[str]:
    """The names of the workspaces that need the image which the store has for this reference."""
    rows = database.execute_sql(
        "SELECT w.name, w.image_ref FROM workspaces w"
        " LEFT JOIN images i ON i.owner_id = w.owner_id AND i.image_ref = w.image_ref"
        f" WHERE w.owner_id = ? AND {USES}",
        (caller.user_id,),
    )
    return sorted(name for name, ref in rows if whole(ref) == whole(image_ref))


def references(caller: Caller) -> list[str]:
    """Every image reference relevant to the caller."""
    rows = database.execute_sql(
        f"SELECT DISTINCT image_ref FROM ({_REFERENCES})", (caller.user_id, caller.administers)
    )
    return [row[0] for row in rows]


def templates_of(caller: Caller) -> list[tuple[str, dict[str, str]]]:
    """The image's reference and {id, name} of every template visible to the caller."""
    rows = database.execute_sql(
        "SELECT r.image_ref, t.id, t.name FROM templates t JOIN template_revisions r"
        f" ON r.template_id = t.id AND r.revision = t.revision WHERE {VISIBLE} ORDER BY t.name, t.id",
        (caller.user_id, caller.administers),
    )
    return [(image_ref, {"id": template_id, "name": name}) for image_ref, template_id, name in rows]


def of(caller: Caller, image_ref: str, template: Template) -> dict[str, Any]:
    """The record of one reference, with the requested template."""
    row = database.execute_sql(
        f"SELECT {_RECORD} {_FROM} WHERE f.image_ref = ?3 ORDER BY f.template_id IS ?4 DESC LIMIT 1",
        (caller.user_id, caller.administers, image_ref, template.id),
    ).fetchone()
    record: dict[str, Any] = json.loads(row[0])
    return record | {"template": {"id": template.id, "name": template.name}}


def warnings(caller: Caller, image_ref: str, template_id: str) -> list[dict[str, str]]:
    """What will not work with this image in workspaces of this template: {code, message, hint}."""
    row = database.execute_sql(
        f"SELECT {_WARNINGS} {_FROM} WHERE f.image_ref = ?3 AND f.template_id = ?4",
        (caller.user_id, caller.administers, image_ref, template_id),
    ).fetchone()
    return list(json.loads(row[0])) if row else []


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """One page: the image of each visible template, and the caller's images without one."""
    found, values = pages.matching(page, ("f.image_ref", "f.template_name"))
    status, statuses = pages.with_status(page, f"({STATUS})")
    order = pages.order_by(page, _SORT, "ref", "f.image_ref, f.template_name, f.template_id")
    parameters = (caller.user_id, caller.administers, *values, *statuses)
    source = f"{_FROM} WHERE {found} AND {status}"
    return pages.select(page, _RECORD, source, parameters, order, lambda row: json.loads(row[0]))
