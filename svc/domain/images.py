"""Images: one user's copy of one reference, in that user's own store.

"Never shared, never root's": the store is asked through the owner's agent, and
what it last said is remembered. Only the worker pulls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain import answers, image_records, operations, registries, template_records, templates
from svc.domain.callers import Caller
from svc.domain.pages import Page
from svc.errors import ImageMissing, SvcError
from svc.limits import CALL_QUICK_S

ERROR_MAX = 500  # characters of a failed pull's reason that are kept


def look(caller: Caller, image_ref: str) -> str | None:
    """Ask the caller's own store for an image and remember the answer: its digest, or None when missing."""
    found = caller.ask("image.inspect", {"image": image_ref}, timeout_s=CALL_QUICK_S)
    if not answers.get_flag(found, "present"):
        remember(caller, image_ref, "missing")
        return None
    digest = answers.find_text(found, "digest", 80) or ""
    remember(caller, image_ref, "ready", digest=digest or None, size=answers.find_number(found, "size_bytes"))
    return digest


def present(caller: Caller, image_ref: str) -> bool:
    """Whether the caller's own store has the image now."""
    return look(caller, image_ref) is not None


def missing(image_ref: str, template_id: str) -> ImageMissing:
    """The refusal that names the way out: "Starting a workspace never pulls or builds an image"."""
    return ImageMissing(
        f"the image {image_ref} is not in your store; a start never pulls it",
        hint=f"svc image pull {template_id} --wait",
        details={"image_ref": image_ref, "template": template_id},
    )


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
    if status == "missing" and known and known[0] in ("pulling", "building", "failed"):
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


def fetch(
    caller: Caller,
    image_ref: str,
    on_progress: Callable[[dict[str, Any]], None],
    cancelled: Callable[[], bool],
) -> dict[str, Any]:
    """Pull an image into the caller's own store, for the worker; returns {image_ref, digest}.

    Raises RegistryNotAllowed when the policy changed meanwhile, and what the
    pull failed with; the image's row says so too. May be run again.
    """
    registries.demand(image_ref)
    remember(caller, image_ref, "pulling")
    try:
        caller.ask("image.pull", {"image": image_ref}, on_progress=on_progress, cancelled=cancelled)
        digest = look(caller, image_ref)
    except SvcError as error:
        _settle(caller, image_ref, error)
        raise
    return {"image_ref": image_ref, "digest": digest}


def _settle(caller: Caller, image_ref: str, error: SvcError) -> None:
    """After a pull that failed: an older copy may still be there, else the row says why there is none."""
    remember(caller, image_ref, "failed", error=error.message[:ERROR_MAX])
    try:
        look(caller, image_ref)
    except SvcError:
        return  # the store cannot be asked now; the next look will


def pull(caller: Caller, template_ref: str) -> dict[str, Any]:
    """Queue the pull of a template's image; refuses a disabled template and an off-list registry."""
    template = templates.usable(caller, template_ref)
    registries.demand(template.image_ref)
    request = {"image_ref": template.image_ref, "template_id": template.id}
    return operations.enqueue(caller, "pull", "image", template.image_ref, request)


def of_template(caller: Caller, template_ref: str) -> dict[str, Any]:
    """The record of a template's image, looked up in the caller's own store just now."""
    template = template_records.find(caller, template_ref)
    look(caller, template.image_ref)
    return image_records.of(caller, template.image_ref, template)


def page_of(caller: Caller, page: Page) -> dict[str, Any]:
    """The caller's images and those of the templates that the caller sees, one page."""
    _look_at_all(caller)
    return image_records.page_of(caller, page)


def _look_at_all(caller: Caller) -> None:
    """Bring what is remembered up to date with one question to the store."""
    found = caller.ask("image.list", {}, timeout_s=CALL_QUICK_S).get("images")
    store: dict[str, dict[str, Any]] = {}
    for image in found if isinstance(found, list) else []:
        if isinstance(image, dict) and isinstance(image.get("names"), list):
            store |= {name: image for name in image["names"] if isinstance(name, str)}
    for image_ref in image_records.references(caller):
        image = store.get(image_records.whole(image_ref))
        if image is None:
            forget(caller, image_ref)
            continue
        digest, size = answers.find_text(image, "digest", 80), answers.find_number(image, "size_bytes")
        remember(caller, image_ref, "ready", digest=digest, size=size)


def forget(caller: Caller, image_ref: str) -> None:
    """Note that the store has lost an image that was there."""
    known = database.execute_sql(
        "SELECT 1 FROM images WHERE owner_id = ? AND image_ref = ? AND status = 'ready'",
        (caller.user_id, image_ref),
    ).fetchone()
    if known:
        remember(caller, image_ref, "missing")
