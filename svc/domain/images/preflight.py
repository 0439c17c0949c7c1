"""Size check before a pull or build: the download against the free disk space and the quota.

The agent reads the manifests; layers already in the store are not counted. Nothing
is downloaded that does not fit, beside what the same user's other pulls, builds and
copies are about to add: those of this process, which is the worker for all but the
copies that a start makes.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from svc.domain import untrusted
from svc.domain.images import usage
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.sizes import format_bytes
from svc.errors import StorageFull
from svc_helper.wire.limits import PREFLIGHT_S


class Figures(NamedTuple):
    """Bytes to download, bytes that must be free for them, bytes free on the disk of the images.

    `present_bytes` need no download.
    """

    download_bytes: int
    needed_bytes: int
    free_bytes: int
    present_bytes: int = 0


class _UnderWay:
    """What is being added to one user's store: what it is, and its bytes."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.added: list[tuple[str, int]] = []

    def bytes_beside(self, name: str) -> int:
        """The bytes of all but `name`; what is added twice at once is there once in the end."""
        most: dict[str, int] = {}
        for one, size in tuple(self.added):
            if one != name:
                most[one] = max(size, most.get(one, 0))
        return sum(most.values())


_under_way: defaultdict[int, _UnderWay] = defaultdict(_UnderWay)  # by user


@contextmanager
def adding(caller: Caller, name: str, size: int, require: Callable[[int], None]) -> Iterator[None]:
    """Count these bytes in the block, in which `name` is added to the caller's store.

    `require` reads the store and raises unless they fit beside the bytes under way that it gets. Those
    are known before the store is read: what ends meanwhile counts twice rather than not at all.
    """
    mine = _under_way[caller.user_id]
    with mine.turn:
        require(mine.bytes_beside(name))
        mine.added.append((name, size))
    try:
        yield
    finally:
        mine.added.remove((name, size))


@contextmanager
def reserving(
    caller: Caller, image_ref: str, images: list[str], cancelled: Callable[[], bool], *, extra_bytes: int = 0
) -> Iterator[Figures | None]:
    """Raise StorageFull or QuotaExceeded, with the numbers, unless these images fit; else with their figures.

    In the block `image_ref`, made of them, counts against the quota as if it were there. `extra_bytes` are
    a build's own files. Without images no registry is asked and there are no figures.
    Raises NotFound and EngineFailed as a pull would, before anything is downloaded.
    """
    figures = ask(caller, images, cancelled=cancelled) if images else None

    def require(under_way: int) -> None:
        limit = quotas.of(caller.user_id).max_image_bytes
        used = 0 if limit is None else usage.of_store(caller).total_bytes
        require_room(figures, limit, used, extra_bytes, under_way)

    with adding(caller, image_ref, _kept_bytes(figures, extra_bytes), require):
        yield figures


def _kept_bytes(figures: Figures | None, extra_bytes: int) -> int:
    """What stays, at least; downloads are deleted when unpacked."""
    return extra_bytes + (figures.download_bytes if figures else 0)


def require_room(
    figures: Figures | None, limit: int | None, used: int, extra_bytes: int = 0, under_way: int = 0
) -> None:
    """Raise StorageFull or QuotaExceeded unless this much fits beside the `used` bytes of images."""
    needed = extra_bytes + (figures.needed_bytes if figures else 0)
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
    quotas.require_image_bytes(limit, used, _kept_bytes(figures, extra_bytes), under_way)


def ask(caller: Caller, images: list[str], **options: Any) -> Figures:
    """The figures for these images, from the caller's agent; `options` are those of the call."""
    found = caller.ask("image.preflight", {"images": images}, timeout_s=PREFLIGHT_S, **options)
    return Figures(*(untrusted.get_capped(found, key) for key in Figures._fields))
