"""Pulls of registry images, by the worker, into the calling user's own store."""

from __future__ import annotations

from typing import Any

from svc.db.connect import database
from svc.domain import engine_hints, registries
from svc.domain.images import images, preflight
from svc.domain.operations import Report
from svc.domain.principal import Caller
from svc.errors import SvcError


def run(caller: Caller, image_ref: str, report: Report) -> dict[str, Any]:
    """Check the size, then pull; returns {image_ref, digest}. Repeatable.

    Raises RegistryNotAllowed when the policy has changed, StorageFull and
    QuotaExceeded before a download, and the error of the pull, which is also stored
    in the image's row.
    """
    registries.require(image_ref)
    images.remember(caller, image_ref, "pulling")
    try:
        report.phase("checking")
        with preflight.reserving(caller, image_ref, [image_ref], report.cancelled) as figures:
            report.expect(figures.download_bytes if figures else 0)
            report.phase("pulling")
            found = caller.ask(
                "image.pull", {"image": image_ref}, on_progress=report.progress, cancelled=report.cancelled
            )
        digest = images.arrived(caller, image_ref, found)
    except SvcError as error:
        engine_hints.complete(error, registry=image_ref.partition("/")[0])
        images.record_failure(caller, image_ref, error, cancelled=report.cancelled())
        raise
    return {"image_ref": image_ref, "digest": digest}


def last_failed(caller: Caller, image_ref: str) -> bool:
    """Check whether the caller's last pull of this image failed, alone or as part of a set-up."""
    row = database.execute_sql(
        "SELECT status FROM operations WHERE owner_id = ? AND subject_type = 'image' AND subject_id = ?"
        " AND kind = 'pull' AND status IN ('succeeded', 'failed')"
        " ORDER BY created_at DESC, rowid DESC LIMIT 1",
        (caller.user_id, image_ref),
    ).fetchone()
    failed = database.execute_sql(
        "SELECT 1 FROM images WHERE owner_id = ? AND image_ref = ? AND status = 'failed'",
        (caller.user_id, image_ref),
    ).fetchone()
    return row == ("failed",) or failed is not None
