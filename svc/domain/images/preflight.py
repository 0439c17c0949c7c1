"""The look ahead of a pull or build: what is to come, against the free disk and the quota, in numbers.

The agent asks the registries for manifests; layers that the store has already
count nothing. Nothing is downloaded before it fits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from svc.domain import untrusted
from svc.domain.images import usage
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.sizes import format_bytes
from svc.errors import StorageFull
from svc.limits import PREFLIGHT_S


class Figures(NamedTuple):
    """What is to be downloaded, what has to be free for it, and what is free where the images are."""

    download_bytes: int
    needed_bytes: int
    free_bytes: int


def require(
    caller: Caller, images: list[str], cancelled: Callable[[], bool], *, extra_bytes: int = 0
) -> Figures | None:
    """Raise StorageFull or QuotaExceeded, with the numbers, unless these images fit; their figures.

    `extra_bytes` come besides (a build's own files). Without images there is nothing to ask a registry
    and no figure. Raises NotFound and EngineFailed as a pull would, but before anything was loaded.
    """
    figures = _ask(caller, images, cancelled) if images else None
    needed = extra_bytes + (figures.needed_bytes if figures else 0)
    kept = extra_bytes + (figures.download_bytes if figures else 0)  # at least; a download goes when unpacked
    if figures and needed > figures.free_bytes:
        raise StorageFull(
            f"{format_bytes(figures.download_bytes)} are to be downloaded and need {format_bytes(needed)};"
            f" the disk of your images has {format_bytes(figures.free_bytes)} free",
            hint="svc image prune",
            details=figures._asdict() | {"needed_bytes": needed},
        )
    limit = quotas.of(caller.user_id).max_image_bytes
    if limit is not None:
        quotas.require_image_bytes(limit, usage.of_store(caller).total_bytes, kept)
    return figures


def _ask(caller: Caller, images: list[str], cancelled: Callable[[], bool]) -> Figures:
    found = caller.ask("image.preflight", {"images": images}, timeout_s=PREFLIGHT_S, cancelled=cancelled)
    return Figures(*(max(0, untrusted.get_number(found, key)) for key in Figures._fields))
