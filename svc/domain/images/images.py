"""Images: one user's copy of one reference, in that user's own store.

"Never shared, never root's": the store is asked through the owner's agent, and
what it last said is remembered. What is to be pulled or built is asked for in
image_requests; only the worker does it (pulls, builds).
"""

from __future__ import annotations

from typing import Any

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain import untrusted
from svc.domain.images import records
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.errors import SvcError

ERROR_MAX = 500  # characters of a failed pull's reason that are kept


def look(caller: Caller, image_ref: str) -> str | None:
    """Ask the caller's own store for an image and remember the answer: its digest, or None when missing."""
    found = caller.ask("image.inspect", {"image": image_ref})
    if not untrusted.get_flag(found, "present"):
        remember(caller, image_ref, "missing")
        return None
    digest = untrusted.find_text(found, "digest", 80) or ""
    remember(
        caller, image_ref, "ready", digest=digest or None, size=untrusted.find_number(found, "size_bytes")
    )
    return digest


def present(caller: Caller, image_ref: str) -> bool:
    """Whether the caller's own store has the image now."""
    return look(caller, image_ref) is not None


def remember(
    caller: Caller,
    image_ref: str,
    status: str,
    *,
    digest: str | None = None,
    size: int | None = None,
    error: str | None = None,
) -> None:
    """Write what is known of the caller's image; a missing one stays failed or on its way if it was."""
    known = database.execute_sql(
        "SELECT status, digest, size_bytes, error FROM images WHERE owner_id = ? AND image_ref = ?",
        (caller.user_id, image_ref),
    ).fetchone()
    if status == "missing":
        if known is not None and known[0] == "ready":
            forget(caller, image_ref)
        return
    if known == (status, digest, size, error):
        return  # the usual case costs no write
    with write():
        database.execute_sql(
            "INSERT INTO images (owner_id, image_ref, status, digest, size_bytes, error, updated_at)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (owner_id, image_ref) DO UPDATE SET"
            " status = ?3, digest = ?4, size_bytes = ?5, error = ?6, updated_at = ?7",
            (caller.user_id, image_ref, status, digest, size, error, now()),
        )


def settle(caller: Caller, image_ref: str, error: SvcError, *, cancelled: bool) -> None:
    """After a pull or build that came to nothing: an older copy may still be there, else the row says why."""
    if cancelled:
        forget(caller, image_ref)
    else:
        remember(caller, image_ref, "failed", error=error.message[:ERROR_MAX])
    try:
        look(caller, image_ref)
    except SvcError:
        return  # the store cannot be asked now; the next look will


def of_template(caller: Caller, template_ref: str) -> dict[str, Any]:
    """The record of a template's image, looked up in the caller's own store just now."""
    template = template_rows.find(caller, template_ref)
    look(caller, template.image_ref)
    return records.of(caller, template.image_ref, template)


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """The caller's images and those of the templates that the caller sees, one page."""
    _look_at_all(caller)
    return records.page_of(caller, page)


def _look_at_all(caller: Caller) -> None:
    """Bring what is remembered up to date with one question to the store."""
    found = caller.ask("image.list", {}).get("images")
    store: dict[str, dict[str, Any]] = {}
    for image in found if isinstance(found, list) else []:
        if isinstance(image, dict) and isinstance(image.get("names"), list):
            store |= {name: image for name in image["names"] if isinstance(name, str)}
    for image_ref in records.references(caller):
        image = store.get(records.whole(image_ref))
        if image is None:
            remember(caller, image_ref, "missing")
            continue
        digest, size = untrusted.find_text(image, "digest", 80), untrusted.find_number(image, "size_bytes")
        remember(caller, image_ref, "ready", digest=digest, size=size)


def forget(caller: Caller, image_ref: str) -> None:
    """Note that the store does not have an image, and that nothing is on its way: it has no row."""
    with write():
        database.execute_sql(
            "DELETE FROM images WHERE owner_id = ? AND image_ref = ?", (caller.user_id, image_ref)
        )
