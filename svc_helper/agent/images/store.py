"""The user's store of images: location, layers, disk usage, removal.

Podman's own sums count a layer once per image. What an image uses alone is
calculated from the store's list of layers, which is untrusted: the user owns it.
"""

from __future__ import annotations

import base64
import json
import os
import re
from _datetime import datetime  # the C half alone
from collections import Counter
from collections.abc import Iterator

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import STORAGE, Home
from svc_helper.agent.images import volumes
from svc_helper.agent.images.descriptions import texts
from svc_helper.agent.podman.http import not_understood
from svc_helper.agent.podman.podman import LIBPOD, Podman, refusal
from svc_helper.wire.quick_typing import Any, NamedTuple

OVERLAY = "overlay"
_LIST_MAX = 64 * 1024 * 1024  # bytes of one of the store's lists
_CONFIG_MAX = 4 * 1024 * 1024  # bytes of an image's configuration
_CHAIN_MAX = 1000  # layers of one image; storage itself takes far fewer
_SIZE_MAX = 2**62
_IMAGE_ID = re.compile(r"[0-9a-f]{64}")
_DIGEST = re.compile(r"[a-z0-9]{1,12}:[0-9a-f]{64}")
_CREATED = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?Z")
_STEP = re.compile(r"docker\.io/library/[0-9a-f]{64}-tmp:latest\Z")  # Podman's name of a step while it builds
_CONTAINER_LISTS = ("containers.json", "volatile-containers.json")  # the second of Podman 5: builds, --rm


class Store(NamedTuple):
    """Root directory and storage driver."""

    root: str
    driver: str


class Layer(NamedTuple):
    """One layer of the store."""

    parent: str
    size: int
    compressed_digest: str
    digest: str


def free_bytes(path: str) -> int:
    """Bytes that an ordinary user may still write to the directory's disk."""
    try:
        found = os.statvfs(path)
    except OSError:
        raise Failure("failed", "the free space on the disk of the images cannot be read") from None
    return found.f_bavail * found.f_frsize


def find(podman: Podman, call: Call) -> Store:
    """The store that Podman uses; read once per Podman process, since its /info is slow."""
    podman.service.start()  # not running yet when the agent's first call was an exec
    process = podman.service.process
    if podman.store is None or podman.store[0] is not process:
        try:
            podman.store = (process, *_ask(podman, call))
        except Failure:
            if os.path.exists(podman.home.registries_conf):  # which Podman's /info needs
                raise
            return configured(podman.home)
    return Store(*podman.store[1:])


def configured(home: Home) -> Store:
    """The store that svc configures for a user's Podman."""
    root = f"{home.store}/{STORAGE}" if home.store else f"{home.home}/.local/share/containers/storage"
    return Store(root, OVERLAY)


def _ask(podman: Podman, call: Call) -> Store:
    found = podman.ask(call, "GET", "/info")
    untrusted = found.get("store") if isinstance(found, dict) else None
    if not isinstance(untrusted, dict):
        raise not_understood()
    root, driver = _text(untrusted, "graphRoot"), _text(untrusted, "graphDriverName")
    if not root.startswith("/") or "/" in driver:
        raise not_understood()
    return Store(root, driver)


def rows_of(path: str) -> list[dict[str, Any]]:
    """The objects in one of the store's lists; none where the file is missing or is not a list."""
    try:
        with open(path, "rb") as file:
            untrusted = json.loads(file.read(_LIST_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    return [row for row in untrusted if isinstance(row, dict)] if isinstance(untrusted, list) else []


def container_rows(place: str) -> list[dict[str, Any]]:
    """The store's own records of its containers and of those of builds; `place` is <root>/<driver>."""
    return [row for name in _CONTAINER_LISTS for row in rows_of(f"{place}-containers/{name}")]


def layers(store: Store) -> dict[str, Layer]:
    """The store's layers by id."""
    return {_text(row, "id"): _layer(row) for row in layer_rows(store)}


def layer_rows(store: Store) -> list[dict[str, Any]]:
    """The store's own records of its layers."""
    return rows_of(f"{store.root}/{store.driver}-layers/layers.json")


def _layer(row: dict[str, Any]) -> Layer:
    size = row.get("diff-size")
    return Layer(
        _text(row, "parent"),
        size if type(size) is int and 0 <= size < _SIZE_MAX else 0,
        _text(row, "compressed-diff-digest"),
        _text(row, "diff-digest"),
    )


def _text(row: dict[str, Any], name: str) -> str:
    value = row.get(name)
    return value if isinstance(value, str) else ""


def records(store: Store) -> list[dict[str, Any]]:
    """The store's own records of its images."""
    return rows_of(f"{store.root}/{store.driver}-images/images.json")


def find_named(store: Store, name: str) -> str:
    """The id of the image with this name; empty for none."""
    return next((_text(row, "id") for row in records(store) if name in texts(row, "names")), "")


def find_digest(store: Store, image_id: str) -> str | None:
    """The digest of an image as its usage has it: of one pulled by a list of images, the list's."""
    row = next((row for row in records(store) if row.get("id") == image_id), {})
    return _digest(row)


def tops(row: dict[str, Any]) -> list[str]:
    """The top layers of an image by its record: its own, and copies mapped to other user ids."""
    return [_text(row, "layer"), *texts(row, "mapped-layers")]


def chain(top: str, known: dict[str, Layer]) -> Iterator[str]:
    """The ids of a layer and those below it; bounded, since a hostile list may have a cycle."""
    for _ in range(_CHAIN_MAX):
        if top not in known:
            return
        yield top
        top = known[top].parent


def usage(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Disk usage of each image, alone and shared; nameless build steps are left out.

    `unused_volumes` is the number of the anonymous ones that no container has.
    """
    store = find(podman, call)
    known = layers(store)
    rows = _rows(store, known)
    chains = {row["image_id"]: row.pop("layers") for row in rows}
    users = Counter(layer for chain in chains.values() for layer in chain)
    for row in rows:
        shared = sum(known[layer].size for layer in chains[row["image_id"]] if users[layer] > 1)
        size = row["size_bytes"]
        row |= {"shared_bytes": min(shared, size), "unique_bytes": max(0, size - shared)}
    total = sum(known[layer].size for layer in users) if known else sum(row["size_bytes"] for row in rows)
    unused = len(volumes.unused(podman, call))
    return {
        "images": rows, "total_bytes": total, "free_bytes": free_bytes(store.root), "unused_volumes": unused,
    }  # fmt: skip


def _rows(store: Store, known: dict[str, Layer]) -> list[dict[str, Any]]:
    """Every image but those without a name from which others were made, by the store's own records.

    Podman's list, which has the same, looks for the parents of each image among all of them, which takes
    seconds for 15 builds of many steps.
    """
    found = _images(store)
    containers = Counter(_text(row, "image") for row in container_rows(f"{store.root}/{store.driver}"))
    hidden = _steps(store, found, known) - containers.keys()
    return [_row(row, containers[row["id"]], known) for row in found if row["id"] not in hidden]


def listed(store: Store) -> list[dict[str, Any]]:
    """Every image that has a name, by the store's own records: Podman's list fails where one is damaged."""
    known = layers(store)
    return [_row(row, 0, known) for row in _images(store) if row["names"]]


def _images(store: Store) -> list[dict[str, Any]]:
    """The records of images, each id once; a name that two of them have is the later one's, as for Podman."""
    found = {_text(row, "id"): row for row in records(store) if _IMAGE_ID.fullmatch(_text(row, "id"))}
    owners = {name: image_id for image_id, row in found.items() for name in texts(row, "names")}
    return [
        row | {"names": [name for name in dict.fromkeys(texts(row, "names")) if owners[name] == image_id]}
        for image_id, row in found.items()
    ]


def _steps(store: Store, found: list[dict[str, Any]], known: dict[str, Layer]) -> set[str]:
    """The ids of nameless images from which another was made, whose layers and history begin with theirs."""
    nameless = [row for row in found if not texts(row, "names")]
    tops_of_these = {_text(row, "layer") for row in nameless}
    above: dict[str, list[str]] = {}
    for row in found if nameless else ():
        for layer in tops_of_these.intersection(chain(_text(row, "layer"), known)):
            above.setdefault(layer, []).append(row["id"])
    histories: dict[str, list[Any]] = {}

    def history(image_id: str) -> list[Any]:
        if image_id not in histories:
            histories[image_id] = _history(store, image_id)
        return histories[image_id]

    def is_begin_of(image_id: str, other: str) -> bool:
        own, its = history(image_id), history(other)
        return 0 < len(own) < len(its) and its[: len(own)] == own

    return {
        row["id"]
        for row in nameless
        if any(is_begin_of(row["id"], other) for other in above.get(_text(row, "layer"), ()))
    }


def _history(store: Store, image_id: str) -> list[Any]:
    """What an image's configuration says of its steps; empty where it cannot be read."""
    name = base64.b64encode(f"sha256:{image_id}".encode()).decode()
    try:
        with open(f"{store.root}/{store.driver}-images/{image_id}/={name}", "rb") as file:
            untrusted = json.loads(file.read(_CONFIG_MAX))
    except (OSError, ValueError, RecursionError):
        return []
    history = untrusted.get("history") if isinstance(untrusted, dict) else None
    return history if isinstance(history, list) else []


def _is_step(row: dict[str, Any]) -> bool:
    """Whether an image has had no names but those that Podman gives to a step while it builds."""
    history = texts(row, "names-history")
    return bool(history) and not texts(row, "names") and all(map(_STEP.match, history))


def _row(untrusted: dict[str, Any], containers: int, known: dict[str, Layer]) -> dict[str, Any]:
    own = untrusted.get("big-data-sizes")
    data = [size for size in own.values() if type(size) is int and size >= 0] if isinstance(own, dict) else []
    own_layers = {layer for top in tops(untrusted) for layer in chain(top, known)}
    return {
        "image_id": untrusted["id"],
        "names": [name for name in texts(untrusted, "names") if name.isprintable()],  # as Podman's all are
        "digest": _digest(untrusted),
        "size_bytes": min(sum(known[layer].size for layer in own_layers) + sum(data), _SIZE_MAX),
        "containers": containers,
        "created_at": _created(untrusted),
        "left_by_build": _is_step(untrusted),
        "layers": own_layers,
    }


def _digest(untrusted: dict[str, Any]) -> str | None:
    digest = _text(untrusted, "digest")
    return digest if _DIGEST.fullmatch(digest) else None


def _created(untrusted: dict[str, Any]) -> str | None:
    """When an image was made; None for no date, and for the year one, which an image without a date has."""
    found = _CREATED.fullmatch(_text(untrusted, "created"))
    try:
        return f"{found[1]}.000Z" if found and datetime.fromisoformat(found[1]).year > 1 else None
    except ValueError:
        return None


def remove(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Remove one name; the image goes with its last name, unless a container needs it."""
    return {"removed": _untag(podman, call, args["image"])}


def _untag(podman: Podman, call: Call, name: str) -> bool:
    """Remove one name, or a nameless image by its id, never by force; False if it was not there."""
    reply = podman.request(call, "DELETE", f"{LIBPOD}/images/{name}?force=false")
    if reply.status == 404:
        return False
    if reply.status == 409:
        raise Failure("conflict", "a container needs the image")
    if reply.status >= 400:
        raise refusal(call, reply.value)
    return True


def prune(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Remove those images that no container uses (checked right before each), never by force.

    With `volumes`, the anonymous volumes that no container has are removed too.
    """
    removed: list[str] = []
    kept: list[str] = []
    for image_id in dict.fromkeys(args["ids"]):
        (removed if _prune_one(podman, call, image_id) else kept).append(image_id)
    return {
        "removed": removed, "kept": kept, "volumes": volumes.prune(podman, call) if args["volumes"] else 0,
    }  # fmt: skip


def _prune_one(podman: Podman, call: Call, image_id: str) -> bool:
    store = find(podman, call)
    row = next((row for row in _rows(store, layers(store)) if row["image_id"] == image_id), None)
    if row is None:
        return True  # removed with another one, or by the user
    if row["containers"]:
        return False
    try:
        for name in row["names"] or [image_id]:
            _untag(podman, call, name)
    except Failure as failure:
        if failure.code in ("conflict", "failed"):  # a container since the check; the base of another image
            return False
        raise
    return True
