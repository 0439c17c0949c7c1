"""A template's revisions: what each is made from, how many are kept.

"An edit makes a new revision; workspaces keep theirs." The image of a
Dockerfile is named by what it is built from, so that a revision that changes
other things has the same image, and a clone has one of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from svc.db.connect import database
from svc.domain.templates import (
    contexts,
    dockerfile_review,
    dockerfiles,
    findings,
    variables,
)
from svc.domain.templates import (
    rows as template_rows,
)
from svc.domain.templates.findings import Content
from svc.domain.templates.rows import Source, Template
from svc.errors import NotFound, QuotaExceeded
from svc.limits import DOCKERFILE_IMAGES_MAX, REVISION_BYTES_PER_USER, REVISIONS_KEPT

BUILT = "localhost/svc/"  # no registry: what is named so comes from a build in the user's own store
DIGEST_SHOWN = 16  # hex digits: a tag that people can read; the template's id goes before it

_KEPT = (
    "SELECT revision FROM (SELECT revision FROM template_revisions WHERE template_id = ?1"
    f" ORDER BY revision DESC LIMIT {REVISIONS_KEPT})"
    " UNION SELECT template_revision FROM workspaces WHERE template_id = ?1"
)

# What the owner of a template has in all revisions; the owner of a global one is nobody, who has none.
_USED = """
SELECT coalesce(sum(length(r.dockerfile)), 0)
    + coalesce(sum(length(r.spec_json) + length(r.sealed_json) + length(r.findings_json)), 0)
FROM templates t JOIN template_revisions r ON r.template_id = t.id
WHERE t.owner_id = (SELECT owner_id FROM templates WHERE id = ?)
"""
_MIB = 1024 * 1024


def source_of(template: Template) -> Source:
    """What the template is made from at its revision."""
    return Source(
        template.source_type,
        template.image_ref if template.source_type == "registry" else None,
        template.dockerfile,
        template.context,
        bool(template.local_only),
        template.written_by,
        template.bundle_digest,
    )


def image_ref(template_id: str, source: Source) -> str:
    """The reference of the image, built or pulled."""
    if source.image_ref is not None:
        return source.image_ref
    digest = contexts.source_digest((source.dockerfile or "").encode(), source.context)
    return f"{BUILT}{template_id}:{digest[:DIGEST_SHOWN]}"


def image_of(template_id: str) -> str | None:
    """The reference of the image that the template has now; None when there is no such template."""
    row = database.execute_sql(
        "SELECT r.image_ref FROM templates t JOIN template_revisions r"
        " ON r.template_id = t.id AND r.revision = t.revision WHERE t.id = ?",
        (template_id,),
    ).fetchone()
    return row[0] if row else None


def is_another(source: Source, before: Source) -> bool:
    """Whether this makes another image than before, or by another way: what was reviewed is gone."""
    parts = ("image_ref", "dockerfile", "context", "local_only")
    return any(getattr(source, part) != getattr(before, part) for part in parts)


def add(
    template_id: str,
    revision: int,
    source: Source,
    spec: dict[str, Any],
    sealed: dict[str, str],
    at: str,
    *,
    previous: Template | None,
) -> None:
    """Add a revision to a template's row, in the caller's write transaction, and drop the oldest.

    Raises ValidationFailed, naming the line, for a Dockerfile that cannot be read,
    and QuotaExceeded.
    """
    dockerfile = None if source.dockerfile is None else dockerfiles.parse(source.dockerfile.encode())
    images = [] if dockerfile is None else dockerfile_review.images(dockerfile)
    if len(images) > DOCKERFILE_IMAGES_MAX:
        raise dockerfiles.wrong(1, "too_many", f"a build takes {DOCKERFILE_IMAGES_MAX} images at most")
    found = findings.static(Content(source, spec, sealed), dockerfile, _earlier(previous))
    database.execute_sql(
        "INSERT INTO template_revisions (template_id, revision, source_type, image_ref, dockerfile, context,"
        " local_only, written_by, bundle_digest, spec_json, sealed_json, images_json, findings_json,"
        " created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            template_id, revision, source.type, image_ref(template_id, source), source.dockerfile,
            source.context, int(source.local_only), source.written_by, source.bundle_digest,
            json.dumps(spec), json.dumps(sealed), json.dumps(images), json.dumps(found), at,
        ),
    )  # fmt: skip
    _drop_oldest(template_id)
    _seal_earlier(template_id, revision, sealed, previous)
    database.execute_sql(  # nobody is shown those of a revision that is no longer the present one
        "UPDATE template_revisions SET findings_json = '[]'"
        " WHERE template_id = ? AND revision < ? AND findings_json <> '[]'",
        (template_id, revision),
    )
    _require_room(template_id)


def _earlier(previous: Template | None) -> Iterator[tuple[str, Content]]:
    """What a new revision is compared with: the one before, and the last that somebody reviewed."""
    if previous is None:
        return
    yield f"revision {previous.revision}", _content(previous)
    if previous.reviewed_revision not in (None, previous.revision):
        with suppress(NotFound):  # too long ago: it is dropped
            reviewed = template_rows.at_revision(previous.id, previous.reviewed_revision)
            yield f"revision {reviewed.revision}, the last that was enabled", _content(reviewed)


def _content(template: Template) -> Content:
    return Content(source_of(template), template.spec, template.sealed)


def _seal_earlier(template_id: str, revision: int, sealed: dict[str, str], previous: Template | None) -> None:
    """What becomes secret is no longer in clear in the earlier revisions, which workspaces may still need."""
    plain = {one["name"] for one in previous.spec["env"] if "value" in one} if previous else set()
    become = {name: value for name, value in sealed.items() if name in plain}
    if not become:
        return
    rows = database.execute_sql(
        "SELECT revision, spec_json, sealed_json FROM template_revisions"
        " WHERE template_id = ? AND revision < ?",
        (template_id, revision),
    ).fetchall()
    for number, spec_json, sealed_json in rows:
        spec = json.loads(spec_json)
        spec["env"], kept = variables.sealed_too(template_id, spec["env"], json.loads(sealed_json), become)
        database.execute_sql(
            "UPDATE template_revisions SET spec_json = ?, sealed_json = ?"
            " WHERE template_id = ? AND revision = ?",
            (json.dumps(spec), json.dumps(kept), template_id, number),
        )


def _require_room(template_id: str) -> None:
    """Raise QuotaExceeded where the revisions of the owner's templates are more than one user's may be."""
    used = database.execute_sql(_USED, (template_id,)).fetchone()[0]
    if used > REVISION_BYTES_PER_USER:
        raise QuotaExceeded(
            f"your templates, with their earlier revisions, would have {-(-used // _MIB)} MiB with this;"
            f" one user may have {REVISION_BYTES_PER_USER // _MIB} MiB",
            hint="svc template list  # deleting one makes room",
            details={
                "resource": "revision_bytes",
                "limit": REVISION_BYTES_PER_USER,
                "used": used,
                "requested": 0,
            },
        )


def _drop_oldest(template_id: str) -> None:
    dropped = database.execute_sql(
        f"DELETE FROM template_revisions WHERE template_id = ?1 AND revision NOT IN ({_KEPT})", (template_id,)
    ).rowcount
    if dropped:
        contexts.sweep()
