"""Validate Podman's description of an image: its id, digest, size and names."""

from __future__ import annotations

import os
import re

from svc_helper.wire.quick_typing import Any

# What the registries call the host's processor, and what it executes besides.
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_ALSO = {"amd64": "386", "arm64": "arm"}
_PLATFORM = re.compile(r"[a-z0-9]{1,20}/[a-z0-9]{1,20}")


def host_architecture() -> str:
    """This host's architecture, as images name it."""
    machine = os.uname().machine
    return _ARCHITECTURES.get(machine, machine)


def foreign_platform(untrusted: dict[str, Any]) -> str | None:
    """The platform of an image, from Podman's description, if its programs do not run here; else None."""
    own = host_architecture()
    system, architecture = untrusted.get("Os") or "linux", untrusted.get("Architecture")
    if not architecture or (system == "linux" and architecture in (own, _ALSO.get(own))):
        return None
    found = f"{system}/{architecture}"
    return found if _PLATFORM.fullmatch(found) else None


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
