"""Building an image in the user's own store: what it comes from is pulled first, then Podman builds.

Both run in processes of their own (puller.py, builder.py), so that they outlive
the agent. "Build only as the calling user": nothing here has any other right.
"""

from __future__ import annotations

import json
import os
import stat
from binascii import a2b_base64
from collections.abc import Iterator
from typing import Any

from svc_helper.agent import subid_ranges
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.images import images
from svc_helper.agent.images import store as image_store
from svc_helper.agent.images.background import Relay
from svc_helper.agent.images.store import Store
from svc_helper.agent.podman.podman import Podman

_END_S = 60  # the builder asks Podman to end, waits half a minute, kills it and clears up
_CONFIG_MAX = 4 * 1024 * 1024


def build(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Build the image from the archive that came with the call and answer what it is.

    Another build of the same sources is waited for and then enough. The caller's
    going does not end it, only a cancel message does. Raises Failure with the
    code "build" for an instruction that failed, and for a base image that brings
    instructions of its own (ONBUILD) unless `triggers` lets them be.
    """
    archive = call.take_fd()
    try:
        if not stat.S_ISREG(os.fstat(archive).st_mode):
            raise Failure("protocol", "no file came with the call")
        call.outlives_caller = True
        subid_ranges.require(podman.home)
        for base in args["bases"]:
            _have(podman, call, base)
        store = image_store.find(podman, call)
        if not args["triggers"]:
            for base in args["bases"]:
                _require_no_triggers(podman, call, store, base)
        podman.scope.wait()  # the build is to live where the agent does, not where it was started
        return _build(podman, call, args["image"], args["bases"], store, archive)
    finally:
        os.close(archive)


def _have(podman: Podman, call: Call, base: str) -> None:
    """Pull a base image unless it is there, as Podman's own build does."""
    if images.inspect(podman, call, {"image": base})["present"]:
        return
    call.progress({"text": f"pulling {base}"[:100], "lines": [f"pulling {base}"]})
    try:
        images.pull(podman, call, {"image": base})
    except Failure as failure:
        raise Failure(failure.code, f"{base}: {failure.message}") from None


def _build(
    podman: Podman, call: Call, image: str, bases: list[str], store: Store, archive: int
) -> dict[str, Any]:
    words = ("build", image, *_places(podman, store), json.dumps(bases))
    while True:
        relay = Relay(podman, "builder", words, call.rid, archive)
        try:
            done = relay.listen(call, _END_S)
        finally:
            if relay.killed:
                _clear(podman, store, archive)
        found = images.inspect(podman, call, {"image": image})
        if found.pop("present"):
            return found
        if done != "waited":  # for one whose image has gone since; now it is our turn
            raise Failure("failed", "the image is not there after its build")


def _places(podman: Podman, store: Store) -> tuple[str, ...]:
    home = podman.home
    return f"{home.own}/locks", f"{home.home}/.cache/svc/builds", f"{store.root}/{store.driver}", home.runtime


def _clear(podman: Podman, store: Store, archive: int) -> None:
    """Remove what a builder left that had to be killed."""
    relay = Relay(podman, "builder", ("clear", "", *_places(podman, store)), "-", archive)
    os.close(relay.said)
    if relay.process.wait(_END_S):
        relay.process.ended()


# --- instructions that a base image brings along -------------------------------------------


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
    """The configurations in the image's record; no form of Podman's own answers has the triggers."""
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
                # As pairs: a key may come twice and in any case, and Podman's reader takes them all.
                yield json.loads(file.read(_CONFIG_MAX), object_pairs_hook=tuple)
        except (OSError, ValueError, RecursionError):
            continue


def _has_triggers(config: Any) -> bool:
    inner = [value for key, value in _pairs(config) if key == "config"]
    return any(key == "onbuild" and value for part in inner for key, value in _pairs(part))


def _pairs(untrusted: Any) -> Iterator[tuple[str, Any]]:
    for pair in untrusted if isinstance(untrusted, tuple) else ():
        yield str(pair[0]).lower(), pair[1]
