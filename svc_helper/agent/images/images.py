"""Images in the user's own store: look, list, pull.

A pull runs in a process of its own (puller.py), so that it outlives the agent.
"""

from __future__ import annotations

import json
from typing import Any

from svc_helper.agent import subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import puller
from svc_helper.agent.images.background import Relay
from svc_helper.agent.podman.http import not_understood
from svc_helper.agent.podman.podman import Podman

_POLICY_MAX = 256 * 1024
_END_S = 30  # TERM, wait, then KILL: a killed pull leaks its temporary files


def inspect(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Whether the image is in the user's store, and what it is."""
    found = podman.ask(call, "GET", f"/images/{args['image']}/json")
    if not isinstance(found, dict):
        return {"present": False, "image_id": None, "digest": None, "size_bytes": None}
    return {"present": True, **facts(found)}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Every image of the user's store that has a name."""
    found = podman.ask(call, "GET", "/images/json")
    if not isinstance(found, list):
        raise not_understood()
    images = []
    for row in found:
        names = row.get("Names") if isinstance(row, dict) else None
        if isinstance(names, list):
            images.append({"names": [name for name in names if isinstance(name, str)], **facts(row)})
    return {"images": images}


def facts(untrusted: dict[str, Any]) -> dict[str, Any]:
    """What an image is, out of Podman's description or its row in a list."""
    size = untrusted.get("Size")
    return {
        "image_id": str(untrusted.get("Id", ""))[:64],
        "digest": str(untrusted.get("Digest", ""))[:80] or None,
        "size_bytes": size if type(size) is int and 0 <= size < 2**62 else None,
    }


def pull(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Pull the image and answer what it is; another pull of the same image is waited for and then enough.

    The caller's going does not end it, only a cancel message does.
    """
    image = args["image"]
    call.outlives_caller = True
    require_allowed(podman, image)
    subid_ranges.require(podman.home)
    while True:
        podman.service.renew_policy()  # Podman reads registries.conf once
        done = pull_once(podman, call, image)
        found = inspect(podman, call, {"image": image})
        if found.pop("present"):
            # Podman reports now and then; a quick pull, or one waited for, ends with a full bar all the same.
            size = found["size_bytes"]
            call.progress({"current": size, "total": size, "unit": "bytes", "text": "ready"})
            return found
        if done != "waited":  # for one that came to nothing; now it is our turn
            raise Failure("failed", "the image is not there after its pull")


def pull_once(podman: Podman, call: Call, image: str) -> str:
    """Pull in a process of its own: "pulled", or "waited" for another pull of the image."""
    sock, served_by = podman.connect()
    with sock:
        sock.setblocking(True)
        words = (image, puller.lock_path(podman.home.own, image))
        relay = Relay(podman, "puller", words, call.rid, sock.fileno(), served_by)
    return relay.listen(call, _END_S)


def require_allowed(podman: Podman, image: str) -> None:
    """Raise Failure for an image of a registry that the host's policy does not name."""
    if not allowed(podman.home.registries, image):
        raise Failure("registry", "images of this registry are not allowed on this host")


def allowed(registries: str, image: str) -> bool:
    """Whether the host's policy lets this image be pulled: exact host, prefix on a path boundary."""
    try:
        with open(registries, encoding="utf-8") as file:
            document = json.loads(file.read(_POLICY_MAX))
    except (OSError, ValueError):
        return False
    host, _, rest = image.partition("/")
    repository = rest.partition("@")[0].partition(":")[0]
    entries = document.get("registries") if isinstance(document, dict) else None
    for entry in entries if isinstance(entries, list) else []:
        if not isinstance(entry, dict) or entry.get("host") != host:
            continue
        prefix = str(entry.get("path_prefix", "")).strip("/")
        if not prefix or f"{repository}/".startswith(f"{prefix}/"):
            return True
    return False
