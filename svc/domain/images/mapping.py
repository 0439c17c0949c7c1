"""Make the copy of an image that `run_as` needs before a container is created, with progress and quota.

Podman copies the whole image for other user ids if the host cannot map them. The copy counts as part
of its image, in `svc image overview` and in the quota, and is removed with it.
"""

from __future__ import annotations

from typing import Any

from svc.domain import untrusted
from svc.domain.images import images, preflight, usage
from svc.domain.operations import Report
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.sizes import format_bytes
from svc.errors import StorageFull
from svc.limits import COPY_BYTES_PER_S, COPY_LEAST_S, COPY_MOST_S, COPY_QUESTION_S


def needed_bytes(caller: Caller, image_ref: str, run_as: dict[str, int] | None) -> int:
    """The size of the copy that a container of this image with this `run_as` needs; 0 if none is missing."""
    if not run_as:
        return 0
    arguments = {"image": image_ref, "run_as": run_as, "copy": False}
    found = caller.ask("image.map", arguments, timeout_s=COPY_QUESTION_S)
    return max(0, untrusted.get_number(found, "copy_bytes"))


def ensure(
    caller: Caller, image_ref: str, run_as: dict[str, int] | None, report: Report | None = None
) -> None:
    """Have the copy made that a container of this image with this `run_as` needs, if any; repeatable.

    Raises ImageMissing, and QuotaExceeded and StorageFull before anything is written. A cancelled
    copy leaves nothing.
    """
    size = needed_bytes(caller, image_ref, run_as)
    if not size:
        return
    copy = f"{image_ref} for {run_as}"
    with preflight.adding(caller, copy, size, lambda under_way: _require_room(caller, size, under_way)):
        options: dict[str, Any] = {}
        if report:
            report.phase("copying")
            options = {"on_progress": report.progress, "cancelled": report.cancelled}
        timeout_s = min(COPY_LEAST_S + size // COPY_BYTES_PER_S, COPY_MOST_S)
        arguments = {"image": image_ref, "run_as": run_as, "copy": True}
        caller.ask("image.map", arguments, timeout_s=timeout_s, **options)
    images.inspect(caller, image_ref)  # updates its size in the row


def _require_room(caller: Caller, size: int, under_way: int) -> None:
    limit = quotas.of(caller.user_id).max_image_bytes
    store = usage.of_store(caller)
    quotas.require_image_bytes(limit, store.total_bytes, size, under_way)
    if size > store.free_bytes:
        raise StorageFull(
            f"run_as needs a copy of the image, of {format_bytes(size)};"
            f" the disk of your images has {format_bytes(store.free_bytes)} free",
            hint="svc image prune",
            details={"needed_bytes": size, "free_bytes": store.free_bytes},
        )
