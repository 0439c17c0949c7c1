"""Size check before a pull or build: the download against the free disk space and the quota.

The agent reads the manifests; layers already in the store are not counted. Nothing
is downloaded that does not fit.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from svc.domain import untrusted
from svc.domain.images import usage
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.sizes import format_bytes
from svc.errors import StorageFull
from svc.limits import PREFLIGHT_S


class Figures(NamedTuple):
    """Bytes to download, bytes that must be free for them, bytes free on the disk of the images.

    `present_bytes` need no download.
    """

    download_bytes: int
    needed_bytes: int
    free_bytes: int
    present_bytes: int = 0


def require(
    caller: Caller, images: list[str], cancelled: Callable[[], bool], *, extra_bytes: int = 0
) -> Figures | None:
    """Raise StorageFull or QuotaExceeded, with the numbers, unless these images fit; returns their figures.

    `extra_bytes` are a build's own files. Without images no registry is asked and there are no figures.
    Raises NotFound and EngineFailed as a pull would, before anything is downloaded.
    """
    figures = ask(caller, images, cancelled=cancelled) if images else None
    limit = quotas.of(caller.user_id).max_image_bytes
    require_room(figures, limit, 0 if limit is None else usage.of_store(caller).total_bytes, extra_bytes)
    return figures


def require_room(figures: Figures | None, limit: int | None, used: int, extra_bytes: int = 0) -> None:
    """Raise StorageFull or QuotaExceeded unless this much fits beside the `used` bytes of images."""
    needed = extra_bytes + (figures.needed_bytes if figures else 0)
    kept = extra_bytes + (
        figures.download_bytes if figures else 0
    )  # lower bound; downloads are deleted when unpacked
    if figures and needed > figures.free_bytes:
        raise StorageFull(
            f"{format_bytes(figures.download_bytes)} are to be downloaded and need {format_bytes(needed)};"
            f" the disk of your images has {format_bytes(figures.free_bytes)} free",
            hint="svc image prune",
            details={
                "download_bytes": figures.download_bytes,
                "needed_bytes": needed,
                "free_bytes": figures.free_bytes,
            },
        )
    quotas.require_image_bytes(limit, used, kept)


def ask(caller: Caller, images: list[str], **options: Any) -> Figures:
    """The figures for these images, from the caller's agent; `options` are those of the call."""
    found = caller.ask("image.preflight", {"images": images}, timeout_s=PREFLIGHT_S, **options)
    return Figures(*(max(0, untrusted.get_number(found, key)) for key in Figures._fields))
