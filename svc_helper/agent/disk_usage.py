"""Disk usage of a user: the store of images and containers, volumes, and the user's own file roots.

Measured without Podman, so that an overview of many users starts none. The sizes of layers come from
the store's lists, which belong to the user and are untrusted. The rest is counted in the file system,
in the user's namespace, since containers have files of other ids.
"""

from __future__ import annotations

import os
import time

from svc_helper.agent.calls import Call
from svc_helper.agent.files import beneath, tree_size
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.files.sizes import Size
from svc_helper.agent.home import Home
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.descriptions import texts
from svc_helper.agent.images.store import OVERLAY, Layer, Store
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_CONTAINERS_MAX = 10_000


def usage(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """{images,mapped,cache,containers,volumes,files}_bytes, `files` (number in the roots), `complete`."""
    call.ends_idle_agent = True
    store = find_store(podman)
    with Namespace(podman.home, call) as namespace:
        counter = _Counter(namespace, call, time.monotonic() + args["seconds"])
        found = of_images(store)
        found["containers_bytes"] = sum(
            counter.measure(store.root, f"{OVERLAY}/{top}/diff").bytes for top in writable_layers(store)
        )
        found["volumes_bytes"] = counter.measure(store.root, "volumes").bytes
        own = [counter.measure(path, "", store.root) for path in own_roots(podman.home)]
    found["files_bytes"] = sum(size.bytes for size in own)
    found["files"] = sum(size.files for size in own)
    return found | {"complete": counter.complete}


def find_store(podman: Podman) -> Store:
    """The store that Podman uses; before Podman was asked, the one that svc configures for it."""
    if podman.store is not None:
        return Store(*podman.store[1:])
    return image_store.configured(podman.home)


def own_roots(home: Home) -> list[str]:
    """The file roots that belong to this user alone, without those shared with other users."""
    return [path for name, path in home.roots.items() if name not in home.read_only]


def of_images(store: Store) -> dict[str, int]:
    """The bytes of the layers of named images, of copies for other ids, and of the build cache."""
    known = image_store.layers(store)
    named: set[str] = set()
    mapped: set[str] = set()
    nameless: set[str] = set()
    for row in image_store.records(store):
        top, *copies = image_store.tops(row)
        (named if texts(row, "names") else nameless).update(image_store.chain(top, known))
        mapped.update(layer for copy in copies for layer in image_store.chain(copy, known))
    return {
        "images_bytes": _sum(named, known),
        "mapped_bytes": _sum(mapped - named, known),
        "cache_bytes": _sum(nameless - named - mapped, known),
    }


def _sum(layers: set[str], known: dict[str, Layer]) -> int:
    return sum(known[layer].size for layer in layers)


def writable_layers(store: Store) -> list[str]:
    """The ids of the writable layers of the store's containers."""
    rows = image_store.container_rows(f"{store.root}/{store.driver}")
    tops = [row["layer"] for row in rows if isinstance(row.get("layer"), str)]
    return [top for top in tops[:_CONTAINERS_MAX] if top.isalnum()]


class _Counter:
    """Measures directories until a deadline; `complete` as long as each was counted in full."""

    def __init__(self, namespace: Namespace, call: Call, until: float) -> None:
        self.namespace, self.call, self.until = namespace, call, until
        self.complete = True

    def measure(self, base: str, path: str, skip: str = "") -> Size:
        """The size of a directory; 0 for one that does not exist."""
        seconds = self.until - time.monotonic()
        if seconds <= 0:
            self.complete = False
            return Size(0, 0, complete=False)
        try:
            with beneath.closing(os.open(base, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) as directory:
                size = self._ask(directory, path.encode(), seconds, _identity(skip))
        except FileNotFoundError:
            return Size(0, 0, complete=True)
        except OSError:
            size = Size(0, 0, complete=False)
        self.complete = self.complete and size.complete
        return size

    def _ask(self, directory: int, path: bytes, seconds: float, skip: tuple[int, int]) -> Size:
        found = self.namespace.measure(directory, path, seconds=seconds, skip=skip)
        if found is None:  # without the namespace: count what the user may read
            return tree_size.measure(self.call, directory, path, seconds=seconds, skip=skip)
        return found


def _identity(path: str) -> tuple[int, int]:
    try:
        status = os.stat(path) if path else None
    except OSError:
        return 0, 0
    return (status.st_dev, status.st_ino) if status else (0, 0)
