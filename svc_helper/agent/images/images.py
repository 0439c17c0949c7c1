"""Images in the user's own store: inspect, list, pull (by the pull program, puller.py)."""

from __future__ import annotations

import json

from svc_helper.agent import subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import image_user, logins, puller, store
from svc_helper.agent.images.background import Relay
from svc_helper.agent.images.descriptions import describe, foreign_platform, texts
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_POLICY_MAX = 256 * 1024
_STOP_TIMEOUT_S = 30  # from SIGTERM to SIGKILL: a killed pull leaves its temporary files


def inspect(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """{present, image_id, digest, size_bytes, user, platform} of an image.

    `user` is None for root, `platform` for one whose programs this host's processor executes.
    """
    found = podman.ask(call, "GET", f"/images/{args['image']}/json")
    if not isinstance(found, dict):
        return {
            "present": False,
            "image_id": None,
            "digest": None,
            "size_bytes": None,
            "user": None,
            "platform": None,
        }
    described = describe(found)
    digests = {name.rpartition("@")[2] for name in texts(found, "RepoDigests")}
    if digests - {described["digest"]}:  # a list of images: Podman 5 tells the digest of the one
        recorded = store.find_digest(store.find(podman, call), described["image_id"])
        described["digest"] = recorded or described["digest"]
    user = image_user.find(podman, call, found)
    return {"present": True, **described, "user": user, "platform": foreign_platform(found)}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Every image of the user's store that has a name."""
    keys = ("names", "image_id", "digest", "size_bytes")
    found = store.listed(store.find(podman, call))
    return {"images": [{key: row[key] for key in keys} for row in found]}


def pull(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Pull the image and return its description; a running pull of the same image is waited for instead.

    A caller that hangs up does not end the pull; a cancel message does.
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
            # A quick pull, or one waited for, has sent no report: progress ends at 100 % all the same.
            size = found["size_bytes"]
            call.progress({"current": size, "total": size, "unit": "bytes", "text": "ready"})
            return found
        if done != "waited":  # for a pull that failed; now it is this call's turn
            raise Failure("failed", "the image is not there after its pull")


def pull_once(podman: Podman, call: Call, image: str) -> str:
    """Run the pull program: "pulled", or "waited" for another pull of the image."""
    sock, served_by = podman.connect()
    with sock:
        sock.setblocking(True)
        arguments = (image, puller.lock_path(podman.home.own, image), logins.find(podman.home, image))
        relay = Relay(podman, "puller", arguments, call.rid, sock.fileno(), served_by)
    return relay.run(call, _STOP_TIMEOUT_S)


def require_allowed(podman: Podman, image: str) -> None:
    """Raise Failure for an image whose registry is not on the host's allowlist."""
    if not allowed(podman.home.registries, image):
        raise Failure("registry", "images of this registry are not allowed on this host")


def allowed(registries: str, image: str) -> bool:
    """Check an image against the allowlist file: exact host, prefix on a path boundary."""
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
