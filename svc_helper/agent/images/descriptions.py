"""Validate Podman's description of an image: its id, digest, size and names."""

from __future__ import annotations

import re

from svc_helper.wire.quick_typing import Any


def texts(untrusted: dict[str, Any], key: str) -> list[str]:
    """The strings in the list at this key; empty if it is not a list."""
    value = untrusted.get(key)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def stored_name(image: str) -> str:
    """A reference as the store lists it and skopeo takes it: of a tag and a digest only the digest."""
    name, at, digest = image.partition("@")
    if at:
        return re.sub(r":[^/]*$", "", name) + at + digest
    return image if ":" in image.rpartition("/")[2] else f"{image}:latest"


def describe(untrusted: dict[str, Any]) -> dict[str, Any]:
    """{image_id, digest, size_bytes} of an image, from Podman's description or a row of its list."""
    size = untrusted.get("Size")
    return {
        "image_id": str(untrusted.get("Id", ""))[:64],
        "digest": str(untrusted.get("Digest", ""))[:80] or None,
        "size_bytes": size if type(size) is int and 0 <= size < 2**62 else None,
    }
