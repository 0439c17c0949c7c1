"""Size check before a pull or build: bytes to download from the registries, bytes free on the disks.

skopeo reads manifests with the user's own logins, else the host's, and the host's policy. Layers
already in the store are not counted. A manifest has compressed sizes only; an
unpacked layer counts as its compressed size, the lower bound, so that nothing
is refused that would fit. A pull that still runs out of space fails by itself.
"""

from __future__ import annotations

import json
import os
import re
import sys

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import images, logins, puller
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.descriptions import host_architecture, stored_name
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman import commands
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any, NamedTuple

# The C half alone: hashlib brings all of OpenSSL, 3 MB of the agent's memory.
if sys.version_info >= (3, 12):
    from _sha2 import sha256
else:
    from _sha256 import sha256

_TEMPORARY = "/var/tmp"  # noqa: S108  never written here: Podman keeps downloads there until the image is complete
_LAYERS_MAX = 4096
_SIZE_MAX = 2**53
_MOUNTED_MAX, _MOUNTED_BY_LATER = 128, 500  # layers of one image


class Manifest(NamedTuple):
    """An image's manifest for this platform; `digest` is the one that a pull reports."""

    digest: str
    config_digest: str
    config_size: int
    layers: list[tuple[str, int]]  # digest, bytes to download


def preflight(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """The sizes for these images; raises Failure as their pull would."""
    store = image_store.find(podman, call)
    layers = image_store.layers(store).values()
    has = {digest for layer in layers for digest in (layer.compressed_digest, layer.digest)}
    rows, needs = [], Needs(has)
    for image in dict.fromkeys(args["images"]):
        images.require_allowed(podman, image)
        manifest = read(podman, call, image)
        _require_mountable(podman, call, len(manifest.layers))
        found = images.inspect(podman, call, {"image": image})
        is_current = found["image_id"] == manifest.config_digest.removeprefix("sha256:")
        rows.append(
            {
                "image": image,
                "present": found["present"],
                "download_bytes": needs.add(manifest, is_current=is_current),
                "digest": manifest.digest,
            }
        )
    sizes = {"download_bytes": needs.download_bytes, "present_bytes": needs.present_bytes}
    return {"images": rows, **sizes, **needs.room(store)}


def _require_mountable(podman: Podman, call: Call, count: int) -> None:
    """Raise Failure for more layers than Podman's overlay driver mounts: 128 before Podman 4.4, then 500."""
    if count <= _MOUNTED_MAX:
        return
    found = podman.ask(call, "GET", "/version")
    version = str(found.get("Version", "")) if isinstance(found, dict) else ""
    numbers = re.match(r"(\d{1,4})\.(\d{1,4})\.", version)
    most = _MOUNTED_MAX if numbers and (int(numbers[1]), int(numbers[2])) < (4, 4) else _MOUNTED_BY_LATER
    if count > most:
        raise Failure("image_too_deep", f"the image has {count} layers; Podman mounts at most {most}")


class Needs:
    """Sizes of several images together; a layer that two of them share counts once.

    `stored` has the digests of the layers in the store.
    """

    def __init__(self, stored: set[str]) -> None:
        self.stored = stored
        self.counted: set[str] = set()
        self.download_bytes = self.present_bytes = 0
        self.unpacked_bytes = 0

    def add(self, manifest: Manifest, *, is_current: bool = False) -> int:
        """Count an image, which the store has if `is_current`, and return its bytes to download."""
        download = 0 if is_current else manifest.config_size
        for digest, size in manifest.layers:
            if digest in self.counted:
                continue
            self.counted.add(digest)
            if is_current or digest in self.stored:
                self.present_bytes += size
                continue
            download += size
            self.unpacked_bytes += size  # lower bound
        self.download_bytes += download
        return download

    def room(self, store: Store) -> dict[str, Any]:
        """Space needed (lower bound) and free, and where; downloads stay on disk until unpacked."""
        needed, where = self.unpacked_bytes, store.root
        if os.stat(_TEMPORARY).st_dev == os.stat(store.root).st_dev:
            needed += self.download_bytes
        elif self.download_bytes > image_store.free_bytes(_TEMPORARY):
            needed, where = self.download_bytes, _TEMPORARY
        return {"needed_bytes": needed, "free_bytes": image_store.free_bytes(where), "store": where}


# --- manifests -----------------------------------------------------------------------------


def read(podman: Podman, call: Call, image: str) -> Manifest:
    """Read the image's manifest; of a list of images, the one for this platform."""
    raw, manifest = _inspect(podman, call, image)
    if "manifests" in manifest:
        repository = re.sub(r"(:[^/]*)?(@.*)?$", "", image)
        _, manifest = _inspect(podman, call, f"{repository}@{_for_this_platform(manifest['manifests'])}")
    return _manifest(manifest, f"sha256:{sha256(raw).hexdigest()}")


def _inspect(podman: Podman, call: Call, image: str) -> tuple[bytes, dict[str, Any]]:
    """The manifest or list of images: the registry's own bytes, and parsed."""
    policy = f"--registries-conf={podman.home.registries_conf}"  # Podman's variable is ignored by skopeo
    login = logins.find(podman.home, image)
    options = ["--raw", *([f"--authfile={login}"] if login else [])]
    try:
        done = commands.run(
            podman, call, "skopeo", policy, "inspect", *options, f"docker://{stored_name(image)}"
        )
    except Failure as failure:
        if failure.code == "timeout":  # skopeo itself waits for ever for what has accepted its connection
            raise Failure("registry_timeout", "the registry did not answer in time") from None
        raise
    if done.status == 127:  # of env, for a command that it does not find
        raise Failure("failed", "skopeo is not installed on this host")
    if done.status != 0:
        reason = done.err.decode(errors="replace")
        call.log("skopeo cannot read a manifest", "warning", why=reason[-2000:])
        raise puller.failure(reason, image)
    try:
        untrusted = json.loads(done.out)
    except (ValueError, RecursionError):
        raise _no_manifest() from None
    if not isinstance(untrusted, dict):
        raise _no_manifest()
    return done.out, untrusted


def _no_manifest() -> Failure:
    """The Failure for what a registry has sent in place of a manifest, as a proxy's page, or one of 2015."""
    return Failure("image_unusable", "what the registry has under this name is no manifest of an image")


def _for_this_platform(untrusted: Any) -> str:
    architecture = host_architecture()
    for row in untrusted if isinstance(untrusted, list) else []:
        platform = row.get("platform") if isinstance(row, dict) else None
        if not isinstance(platform, dict) or platform.get("os") != "linux":
            continue
        digest = row.get("digest")
        if platform.get("architecture") == architecture and _is_digest(digest):
            return str(digest)
    raise Failure(
        "wrong_architecture", f"the registry has the image for other platforms only, not for {architecture}"
    )


def _is_digest(untrusted: Any) -> bool:
    return isinstance(untrusted, str) and re.fullmatch(r"sha256:[0-9a-f]{64}", untrusted) is not None


def _manifest(untrusted: dict[str, Any], digest: str) -> Manifest:
    config, layers = untrusted.get("config"), untrusted.get("layers")
    if not isinstance(config, dict) or not isinstance(layers, list) or len(layers) > _LAYERS_MAX:
        raise _no_manifest()
    return Manifest(digest, str(config.get("digest")), _size(config), [_layer(layer) for layer in layers])


def _layer(untrusted: Any) -> tuple[str, int]:
    if not isinstance(untrusted, dict) or not _is_digest(untrusted.get("digest")):
        raise _no_manifest()
    return untrusted["digest"], _size(untrusted)


def _size(untrusted: dict[str, Any]) -> int:
    size = untrusted.get("size")
    if type(size) is not int or not 0 <= size < _SIZE_MAX:
        raise _no_manifest()
    return size
