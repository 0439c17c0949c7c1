"""The look ahead of a pull or build: how much the registries would send, and how much room there is.

Podman's command line reads a manifest as a pull would, with the user's own
logins and the host's policy. Layers that the store has do not count. A manifest
does not tell what a layer takes unpacked: at least what it takes compressed, and
only that counts, so nothing is refused that would fit. A pull that runs out of
room for the rest says so itself.
"""

from __future__ import annotations

import json
import os
import re
from _sha256 import sha256  # the C half alone: hashlib brings all of OpenSSL, 3 MB of the agent's memory
from typing import Any, NamedTuple

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import images
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.puller import PullFailed
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman import commands
from svc_helper.agent.podman.http import not_understood
from svc_helper.agent.podman.podman import Podman

_TEMPORARY = "/var/tmp"  # noqa: S108  only looked at: where Podman keeps what it downloads until the image is whole
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "armv7l": "arm", "i686": "386"}
_LAYERS_MAX = 4096
_SIZE_MAX = 2**53
# An image of one platform comes as a complaint, in Go's quoting, that it is no list of images.
_SINGLE = re.compile(rb'parsing manifest blob ("(?:[^"\\]|\\.)*+") as a "')


class Manifest(NamedTuple):
    """What a registry says of an image for this platform."""

    digest: str | None
    config_digest: str
    config_size: int
    layers: list[tuple[str, int]]  # digest, bytes to download


def preflight(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """What the images would cost; raises Failure as a pull of them would."""
    store = image_store.find(podman, call)
    layers = image_store.layers(store).values()
    has = {digest for layer in layers for digest in (layer.compressed_digest, layer.digest)}
    rows, needs = [], Needs()
    for image in dict.fromkeys(args["images"]):
        images.require_allowed(podman, image)
        manifest = read(podman, call, image)
        found = images.inspect(podman, call, {"image": image})
        if found["image_id"] == manifest.config_digest.removeprefix("sha256:"):
            download = 0
        else:
            download = needs.add(manifest, has)
        row = {
            "image": image,
            "present": found["present"],
            "download_bytes": download,
            "digest": manifest.digest,
        }
        rows.append(row)
    return {"images": rows, "download_bytes": needs.download_bytes, **needs.room(store)}


class Needs:
    """What several images need together; a layer that two of them have comes once."""

    def __init__(self) -> None:
        self.download_bytes = 0
        self.unpacked_bytes = 0

    def add(self, manifest: Manifest, has: set[str]) -> int:
        """Count an image; its bytes to download. Its layers are in `has` from now on."""
        download = manifest.config_size
        for digest, size in manifest.layers:
            if digest in has:
                continue
            has.add(digest)
            download += size
            self.unpacked_bytes += size  # at least
        self.download_bytes += download
        return download

    def room(self, store: Store) -> dict[str, Any]:
        """What has to be free at least, what is, and where: downloads stay until they are unpacked."""
        free, temporary = store.free_bytes(), image_store.free_bytes(_TEMPORARY)
        if os.stat(_TEMPORARY).st_dev == os.stat(store.root).st_dev:
            needed = self.download_bytes + self.unpacked_bytes
        elif self.download_bytes > temporary:
            return _room(self.download_bytes, temporary, _TEMPORARY)
        else:
            needed = self.unpacked_bytes
        return _room(needed, free, store.root)


def _room(needed: int, free: int, where: str) -> dict[str, Any]:
    return {"needed_bytes": needed, "free_bytes": free, "store": where}


# --- manifests -----------------------------------------------------------------------------


def read(podman: Podman, call: Call, image: str) -> Manifest:
    """The manifest of the image for this platform; a list of images is followed to it."""
    raw, untrusted = _inspect(podman, call, image)
    digest = image.partition("@")[2] or None
    if "manifests" in untrusted:  # whose own digest is not known: Podman writes it anew
        repository = re.sub(r"(:[^/]*)?(@.*)?$", "", image)
        _, untrusted = _inspect(podman, call, f"{repository}@{_for_this_platform(untrusted['manifests'])}")
    elif raw is not None:
        digest = f"sha256:{sha256(raw).hexdigest()}"
    return _manifest(untrusted, digest)


def _inspect(podman: Podman, call: Call, image: str) -> tuple[bytes | None, dict[str, Any]]:
    """The manifest, in the registry's own bytes too where Podman tells them."""
    done = commands.run(podman, call, "manifest", "inspect", image)
    raw = None
    if done.status != 0:
        single = _SINGLE.search(done.err)
        if single is None:
            words = done.err.decode(errors="replace")
            call.log("podman cannot read a manifest", "warning", words=words[-2000:])
            raise PullFailed(words)
        raw = unquoted(single[1])
    try:
        untrusted = json.loads(done.out if raw is None else raw)
    except (ValueError, RecursionError):
        raise not_understood() from None
    if not isinstance(untrusted, dict):
        raise not_understood()
    return raw, untrusted


def unquoted(quoted: bytes) -> bytes:
    """The text in a Go string of printable ASCII; Python's escapes mean the same."""
    return quoted[1:-1].decode("unicode_escape", "replace").encode("latin-1", "replace")


def _for_this_platform(untrusted: Any) -> str:
    wanted = os.uname().machine
    wanted = _ARCHITECTURES.get(wanted, wanted)
    for row in untrusted if isinstance(untrusted, list) else []:
        platform = row.get("platform") if isinstance(row, dict) else None
        if not isinstance(platform, dict) or platform.get("os") != "linux":
            continue
        digest = row.get("digest")
        if platform.get("architecture") == wanted and _is_digest(digest):
            return str(digest)
    raise Failure("not_found", f"the registry has the image for other platforms only, not for {wanted}")


def _is_digest(untrusted: Any) -> bool:
    return isinstance(untrusted, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", untrusted) is not None


def _manifest(untrusted: dict[str, Any], digest: str | None) -> Manifest:
    config, layers = untrusted.get("config"), untrusted.get("layers")
    if not isinstance(config, dict) or not isinstance(layers, list) or len(layers) > _LAYERS_MAX:
        raise not_understood()
    return Manifest(digest, str(config.get("digest")), _size(config), [_layer(layer) for layer in layers])


def _layer(untrusted: Any) -> tuple[str, int]:
    if not isinstance(untrusted, dict) or not _is_digest(untrusted.get("digest")):
        raise not_understood()
    return untrusted["digest"], _size(untrusted)


def _size(untrusted: dict[str, Any]) -> int:
    size = untrusted.get("size")
    if type(size) is not int or not 0 <= size < _SIZE_MAX:
        raise not_understood()
    return size
