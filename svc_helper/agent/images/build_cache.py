"""Decides whether a build may reuse build steps from the store.

Podman's build takes any image for the result of a step if its layers stand on the
same base and its history matches. The history of an image from a registry is
whatever its author wrote: it would stand for steps that were never run. So steps
are reused only while no such image stands on a base of the build.
"""

from __future__ import annotations

import re
from typing import Any

from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.images import texts
from svc_helper.agent.images.store import Store

# Names given by svc's builds, and temporarily by Podman to each step.
_OWN = re.compile(r"localhost/svc/.*|docker\.io/library/[0-9a-f]{64}-tmp:latest")


def is_sound(store: Store, bases: list[str], dockerfile: bytes) -> bool:
    """Check that every image that could pass for a step of the build was built here."""
    rows = image_store.records(store)
    known = image_store.layers(store)
    if b"scratch" in dockerfile.lower():  # the base of every image
        return not any(_is_foreign(row) for row in rows)
    for base in bases:
        found = [row for row in rows if _whole(base) in texts(row, "names")]
        if len(found) != 1:
            return False
        tops = set(image_store.tops(found[0]))
        for row in rows:
            if row.get("id") == found[0].get("id") or not _is_foreign(row):
                continue
            if any(layer in tops for top in image_store.tops(row) for layer in image_store.chain(top, known)):
                return False
    return True


def _is_foreign(row: dict[str, Any]) -> bool:
    """Check for a present or earlier name that no build of svc gives: the image came from elsewhere."""
    names = [*texts(row, "names"), *texts(row, "names-history")]
    return any(not _OWN.fullmatch(name) for name in names)


def _whole(image: str) -> str:
    """A reference as the store lists it."""
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"
