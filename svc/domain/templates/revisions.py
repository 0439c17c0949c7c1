"""A template's revisions: content, image reference, retention.

"An edit makes a new revision; workspaces keep theirs." The image of a Dockerfile
is named by the digest of its sources, so that a revision with the same sources
has the same image, and a clone has its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from svc.db.connect import database
from svc.domain.templates import contexts, dockerfile_review, dockerfiles, findings, variables
from svc.domain.templates import rows as template_rows
from svc.domain.templates.findings import Content
from svc.domain.templates.rows import Source, Template
from svc.errors import NotFound
from svc.limits import REVISION_BYTES_PER_USER, REVISIONS_KEPT
from svc_helper.wire.limits import DOCKERFILE_IMAGES_MAX

BUILT = "localhost/svc/"  # not a registry: images that are built in the user's own store
TAG_DIGITS = 16  # hex digits of the sources' digest

_KEPT = (
    "SELECT revision FROM (SELECT revision FROM template_revisions WHERE template_id = ?1"
    f" ORDER BY revision DESC LIMIT {REVISIONS_KEPT})"
    " UNION SELECT template_revision FROM workspaces WHERE template_id = ?1"
)

# Bytes of all revisions of the template's owner; 0 for a global template.
_USED = """
SELECT coalesce(sum(length(r.dockerfile)), 0)
    + coalesce(sum(length(r.spec_json) + length(r.sealed_json) + length(r.findings_json)), 0)
FROM templates t JOIN template_revisions r ON r.template_id = t.id
WHERE t.owner_id = (SELECT owner_id FROM templates WHERE id = ?)
"""


def source_of(template: Template) -> Source:
    """The source of the template's revision."""
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
    """The reference of the image that is built or pulled."""
    if source.image_ref is not None:
        return source.image_ref
    digest = contexts.source_digest((source.dockerfile or "").encode(), source.context)
    return f"{BUILT}{template_id}:{digest[:TAG_DIGITS]}"


def image_of(template_id: str) -> str | None:
    """The reference of the template's present image; None when there is no such template."""
    row = database.execute_sql(
        "SELECT r.image_ref FROM templates t JOIN template_revisions r"
        " ON r.template_id = t.id AND r.revision = t.revision WHERE t.id = ?",
        (template_id,),
    ).fetchone()
    return row[0] if row else None


def is_another(source: Source, before: Source) -> bool:
    """Check whether the image changes, or how it is made: the review is void then."""
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
    """Add a revision in the caller's write transaction, and delete the oldest.

    Raises ValidationFailed, naming the line, for an invalid Dockerfile, and QuotaExceeded.
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
    _delete_oldest(template_id)
    _encrypt_earlier(template_id, revision, sealed, previous)
    database.execute_sql(  # only those of the present revision are ever returned
        "UPDATE template_revisions SET findings_json = '[]'"
        " WHERE template_id = ? AND revision < ? AND findings_json <> '[]'",
        (template_id, revision),
    )
    used = database.execute_sql(_USED, (template_id,)).fetchone()[0]
    contexts.require_bytes(
        "revision_bytes", "your templates, with their earlier revisions,", used, REVISION_BYTES_PER_USER
    )


def _earlier(previous: Template | None) -> Iterator[tuple[str, Content]]:
    """The revisions that a new one is compared with: the previous one, and the last reviewed one."""
    if previous is None:
        return
    yield f"revision {previous.revision}", content_of(previous)
    if previous.reviewed_revision not in (None, previous.revision):
        with suppress(NotFound):  # deleted as too old
            reviewed = template_rows.at_revision(previous.id, previous.reviewed_revision)
            yield f"revision {reviewed.revision}, the last that was enabled", content_of(reviewed)


def content_of(template: Template) -> Content:
    """The reviewed parts of a template at its revision."""
    return Content(source_of(template), template.spec, template.sealed)


def _encrypt_earlier(
    template_id: str, revision: int, sealed: dict[str, str], previous: Template | None
) -> None:
    """Encrypt in earlier revisions, which workspaces may still use, the variables that become secret."""
    plain = {one["name"] for one in previous.spec["env"] if "value" in one} if previous else set()
    now_secret = {name: value for name, value in sealed.items() if name in plain}
    if not now_secret:
        return
    rows = database.execute_sql(
        "SELECT revision, spec_json, sealed_json FROM template_revisions"
        " WHERE template_id = ? AND revision < ? AND json_valid(spec_json) AND json_valid(sealed_json)",
        (template_id, revision),
    ).fetchall()
    for number, spec_json, sealed_json in rows:
        spec = json.loads(spec_json)
        spec["env"], kept = variables.encrypt_earlier(
            template_id, spec["env"], json.loads(sealed_json), now_secret
        )
        database.execute_sql(
            "UPDATE template_revisions SET spec_json = ?, sealed_json = ?"
            " WHERE template_id = ? AND revision = ?",
            (json.dumps(spec), json.dumps(kept), template_id, number),
        )


def delete_unused(template_id: str) -> bool:
    """Delete the revisions that are neither the present or the reviewed one nor a workspace's.

    In the caller's write transaction; whether there were any.
    """
    dropped = database.execute_sql(
        "DELETE FROM template_revisions WHERE template_id = ?1 AND revision NOT IN"
        " (SELECT revision FROM templates WHERE id = ?1"
        " UNION SELECT coalesce(reviewed_revision, 0) FROM templates WHERE id = ?1"
        " UNION SELECT template_revision FROM workspaces WHERE template_id = ?1)",
        (template_id,),
    ).rowcount
    if dropped:
        contexts.delete_unused()
    return bool(dropped)


def _delete_oldest(template_id: str) -> None:
    dropped = database.execute_sql(
        f"DELETE FROM template_revisions WHERE template_id = ?1 AND revision NOT IN ({_KEPT})", (template_id,)
    ).rowcount
    if dropped:
        contexts.delete_unused()
