"""Builds in the user's own store: pull the base images, then run the build program (builder.py).

"Build only as the calling user": nothing here has any other right.
"""

from __future__ import annotations

import json
import os
import stat
from binascii import a2b_base64
from collections.abc import Iterator

from svc_helper.agent import subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import build_secrets, images, killed_builds
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.background import Relay
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

_CONFIG_MAX = 4 * 1024 * 1024


def build(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Build the image from the archive that came with the call and return its description.

    A running build of the same sources is waited for instead. A caller that hangs
    up does not end the build; a cancel message does. Raises Failure with the code
    "build" for an instruction that failed, and for a base image with instructions
    of its own (ONBUILD) unless `triggers` allows them.
    """
    archive = call.take_fd()
    try:
        if not stat.S_ISREG(os.fstat(archive).st_mode):
            raise Failure("protocol", "no file came with the call")
        call.outlives_caller = True
        subid_ranges.require(podman.home)
        for base in args["bases"]:
            _ensure_base(podman, call, base)
        store = image_store.find(podman, call)
        if not args["triggers"]:
            for base in args["bases"]:
                _require_no_triggers(podman, call, store, base)
        podman.scope.wait()  # the build belongs in the agent's scope, not in the one it was started from
        return _build(podman, call, args, store, archive)
    finally:
        os.close(archive)


def _ensure_base(podman: Podman, call: Call, base: str) -> None:
    """Pull a base image unless it is in the store, as Podman's own build does."""
    if images.inspect(podman, call, {"image": base})["present"]:
        return
    call.progress({"text": f"pulling {base}"[:100], "lines": [f"pulling {base}"]})
    try:
        images.pull(podman, call, {"image": base})
    except Failure as failure:
        raise Failure(failure.code, f"{base}: {failure.message}", failure.engine) from None


def _build(podman: Podman, call: Call, args: dict[str, Any], store: Store, archive: int) -> dict[str, Any]:
    image = args["image"]
    of_secrets = args.get("secrets")
    sources = {
        "bases": args["bases"],
        "build_args": args.get("build_args") or {},
        "secrets": build_secrets.paths(podman.home, **of_secrets) if of_secrets else {},
    }
    arguments = ("build", image, *killed_builds.directories(podman, store), json.dumps(sources))
    while True:
        relay = Relay(podman, "builder", arguments, call.rid, archive)
        try:
            done = relay.run(call, killed_builds.STOP_TIMEOUT_S)
        finally:
            if relay.killed:
                killed_builds.remove_all(podman, store)
        found = images.inspect(podman, call, {"image": image})
        if found.pop("present"):
            return found
        if done != "waited":  # for a build whose image has been removed since; now it is this call's turn
            raise Failure("failed", "the image is not there after its build")


# --- instructions of base images (ONBUILD) -------------------------------------------------


def _require_no_triggers(podman: Podman, call: Call, store: Store, base: str) -> None:
    found = images.inspect(podman, call, {"image": base})
    configs = list(_configs(store, str(found["image_id"])))
    if not configs:
        raise Failure("failed", f"{base} is not in the store as an image with a configuration")
    if any(_has_triggers(config) for config in configs):
        raise Failure(
            "build",
            f"{base} brings instructions of its own (ONBUILD): they run only for a Dockerfile that you wrote",
        )


def _configs(store: Store, image_id: str) -> Iterator[Any]:
    """The configurations in the image's record; Podman's API does not return the triggers."""
    directory = f"{store.root}/{store.driver}-images/{image_id}"
    try:
        names = os.listdir(directory)
    except OSError:
        return
    for name in names:
        try:
            if not a2b_base64(name.removeprefix("="), strict_mode=True).startswith(b"sha256:"):
                continue
            with open(f"{directory}/{name}", "rb") as file:
                # As pairs: Podman's parser accepts a repeated key, and a key in any case.
                yield json.loads(file.read(_CONFIG_MAX), object_pairs_hook=tuple)
        except (OSError, ValueError, RecursionError):
            continue


def _has_triggers(config: Any) -> bool:
    inner = [value for key, value in _pairs(config) if key == "config"]
    return any(key == "onbuild" and value for part in inner for key, value in _pairs(part))


def _pairs(untrusted: Any) -> Iterator[tuple[str, Any]]:
    for pair in untrusted if isinstance(untrusted, tuple) else ():
        yield str(pair[0]).lower(), pair[1]
