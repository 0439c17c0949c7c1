"""Images: one user's copy of one reference, in that user's own store.

"Never shared, never root's": the owner's agent reads the store, and a row caches
its last reply. Users request pulls and builds (requests.py); the worker runs them
(pulls.py, builds.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from svc.db.connect import database, write
from svc.domain import image_users, untrusted
from svc.domain.images import records
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.errors import SvcError
from svc.host.ids import now

ERROR_MAX = 500  # characters of a stored reason of a failure
DIGEST_MAX = 80  # characters


def inspect(caller: Caller, image_ref: str) -> str | None:
    """Look an image up in the caller's own store and update its row; its digest, or None when missing."""
    found = caller.ask("image.inspect", {"image": image_ref})
    if not untrusted.get_flag(found, "present"):
        remember(caller, image_ref, "missing")
        return None
    return arrived(caller, image_ref, found)


def arrived(caller: Caller, image_ref: str, found: Mapping[str, Any]) -> str:
    """Update the row of an image by what the caller's agent found in the store; its digest."""
    return _remember_ready(caller, image_ref, found, image_users.of(found)) or ""


def present(caller: Caller, image_ref: str) -> bool:
    """Check whether the caller's own store has the image now."""
    return inspect(caller, image_ref) is not None


def remember(
    caller: Caller,
    image_ref: str,
    status: str,
    *,
    digest: str | None = None,
    size: int | None = None,
    error: str | None = None,
    user: str | None = None,
) -> None:
    """Update the row of the caller's image; a missing one stays failed, pulling or building."""
    known = database.execute_sql(
        "SELECT status, digest, size_bytes, error, user_json FROM images"
        " WHERE owner_id = ? AND image_ref = ?",
        (caller.user_id, image_ref),
    ).fetchone()
    if status == "missing":
        if known is not None and known[0] == "ready":
            forget(caller, image_ref)
        return
    if known == (status, digest, size, error, user):
        return  # the usual case costs no write
    with write():
        database.execute_sql(
            "INSERT INTO images"
            " (owner_id, image_ref, status, digest, size_bytes, error, updated_at, user_json)"
            " VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) ON CONFLICT (owner_id, image_ref) DO UPDATE SET"
            " status = ?3, digest = ?4, size_bytes = ?5, error = ?6, updated_at = ?7, user_json = ?8",
            (caller.user_id, image_ref, status, digest, size, error, now(), user),
        )


def _remember_ready(caller: Caller, image_ref: str, found: Mapping[str, Any], user: str | None) -> str | None:
    digest = untrusted.find_text(found, "digest", DIGEST_MAX)
    size = untrusted.find_number(found, "size_bytes")
    remember(caller, image_ref, "ready", digest=digest or None, size=size, user=user)
    return digest


def record_failure(caller: Caller, image_ref: str, error: SvcError, *, cancelled: bool) -> None:
    """Update the row after a failed pull or build: with the error, or with an older copy in the store."""
    if cancelled:
        forget(caller, image_ref)
    else:
        remember(caller, image_ref, "failed", error=error.message[:ERROR_MAX])
    with suppress(SvcError):  # an unreachable store is inspected next time
        inspect(caller, image_ref)


def of_template(caller: Caller, template_ref: str) -> dict[str, Any]:
    """The record of a template's image, after a lookup in the caller's own store."""
    template = template_rows.find(caller, template_ref)
    inspect(caller, template.image_ref)
    return records.of(caller, template.image_ref, template)


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """The image of each visible template, and the caller's images without one, one page."""
    _refresh(caller)
    return records.page_of(caller, page)


def _refresh(caller: Caller) -> None:
    """Update all rows by one list of the store."""
    found = caller.ask("image.list", {}).get("images")
    store: dict[str, dict[str, Any]] = {}
    for image in found if isinstance(found, list) else []:
        if isinstance(image, dict) and isinstance(image.get("names"), list):
            store |= {name: image for name in image["names"] if isinstance(name, str)}
    users = _users(caller)
    for image_ref in records.references(caller):
        image = store.get(records.whole(image_ref))
        if image is None:
            remember(caller, image_ref, "missing")
        else:  # a list does not say whose the programs are; of the same image it is known
            digest = untrusted.find_text(image, "digest", DIGEST_MAX)
            _remember_ready(caller, image_ref, image, users.get((image_ref, digest)))


def _users(caller: Caller) -> dict[tuple[str, Any], str]:
    """What is known of users and platforms, by reference and digest of the caller's images."""
    return {
        (image_ref, digest): user
        for image_ref, digest, user in database.execute_sql(
            f"SELECT i.image_ref, i.digest, {image_users.KEPT} FROM images i"
            f" WHERE i.owner_id = ? AND {image_users.KEPT} IS NOT NULL",
            (caller.user_id,),
        )
    }


def forget(caller: Caller, image_ref: str) -> None:
    """Delete the row of an image that is neither in the store nor being pulled or built."""
    with write():
        database.execute_sql(
            "DELETE FROM images WHERE owner_id = ? AND image_ref = ?", (caller.user_id, image_ref)
        )
