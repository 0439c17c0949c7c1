"""Decides whether a build may reuse build steps from the store, and tells why not.

Podman's build takes any image for the result of a step if its top layer stands
directly on the layer that the step starts from (or is that layer, for a step that
changes no file) and its history matches. The history of an image from a registry
is whatever its author wrote: it would stand for steps that were never run. So
steps are reused only while no such image is where a step of the build could look.
"""

from __future__ import annotations

import os
import re

from svc_helper.agent import user_files
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.descriptions import stored_name, texts
from svc_helper.agent.images.store import Layer, Store
from svc_helper.wire.quick_typing import Any

# Names given by svc's builds, and temporarily by Podman to each step.
_OWN = re.compile(r"localhost/svc/.*|docker\.io/library/[0-9a-f]{64}-tmp:latest")
_ID = re.compile(r"[0-9a-f]{64}")
_BUILT_MAX = 1000  # ids kept; the oldest go first
_SCRATCH = ""  # what the first layer of every image stands on


def obstacle(store: Store, bases: list[str], dockerfile: bytes, built: frozenset[str]) -> str:
    """Why no step may come from the store; empty if every image that could pass for one was built here.

    `built` has the ids of the images that svc built: an id is the digest of what is
    in an image, so such an image stays trusted under any name.
    """
    rows = image_store.records(store)
    known = image_store.layers(store)
    starts: dict[str, set[str]] = {}  # by the image's id: the layers that a step may start from
    if b"scratch" in dockerfile.lower():
        starts["scratch"] = {_SCRATCH}
    for base in bases:
        found = [row for row in rows if stored_name(base) in texts(row, "names")]
        if len(found) != 1:
            return f"{base} cannot be told from other images of the store"
        starts[str(found[0].get("id"))] = set(image_store.tops(found[0]))
    if not starts:
        return ""
    foreign = [row for row in rows if _is_foreign(row, built)]
    bases_layers = set().union(*starts.values())
    own = {
        top
        for row in rows
        if row not in foreign
        for top in image_store.tops(row)
        if not bases_layers.isdisjoint([_SCRATCH, *image_store.chain(top, known)])
    }
    for row in foreign:
        others = (layers for image_id, layers in starts.items() if image_id != row.get("id"))
        # A base is no result of a step upon itself, also where steps that changed no file have its top layer.
        itself = starts.get(str(row.get("id")), set())
        if _may_pass(row, known, (own - itself).union(*others)):
            return (
                f"{_foreign_names(row)[0][:255]} was not built here and could pass for a step of this build"
            )
    return ""


def built_here(path: str) -> frozenset[str]:
    """The ids of images that this user's builds have made."""
    return frozenset(_recorded(path))


def record(path: str, image_id: str) -> None:
    """Add an image that svc has built."""
    ids = [known for known in _recorded(path) if known != image_id]
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    user_files.replace(path, "\n".join([*ids[1 - _BUILT_MAX :], image_id, ""]))


def _recorded(path: str) -> list[str]:
    try:
        content = user_files.read(path, 128 * _BUILT_MAX).decode(errors="replace")
    except OSError:
        return []
    return [line for line in content.split("\n") if _ID.fullmatch(line)]


def _may_pass(row: dict[str, Any], known: dict[str, Layer], starts: set[str]) -> bool:
    """Whether the image stands where a step that starts from one of these layers looks for its result."""
    for top in image_store.tops(row):
        if top in starts:
            return True
        if top and (top not in known or known[top].parent in starts):
            return True
    return False


def _is_foreign(row: dict[str, Any], built: frozenset[str]) -> bool:
    """Check whether the image came from elsewhere."""
    return row.get("id") not in built and bool(_foreign_names(row))


def _foreign_names(row: dict[str, Any]) -> list[str]:
    """The present and earlier names that no build of svc gives."""
    return [
        name for key in ("names", "names-history") for name in texts(row, key) if not _OWN.fullmatch(name)
    ]
