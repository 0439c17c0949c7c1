"""What a workspace's container had written in a former store: put into the new container before its start.

`svc admin move-store` copies it to the store directory, with the image that the container had. The files
belong to the user's subordinate ids, so a process in Podman's namespaces moves them. Every step may be
repeated: what is moved is gone from the copy.
"""

from __future__ import annotations

import json
import os

from svc_helper.agent import user_files
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home
from svc_helper.agent.podman import commands
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.quick_typing import Any

LAYER = ""  # in place of a path inside: the container's own layer
_NOTE = "moved.json"
_NOTE_MAX = 64 * 1024
_MOVE = """set -e
while [ $# -ge 2 ]; do
    if [ -e "$1" ]; then rm -rf -- "$2"; mv -T -- "$1" "$2"; fi
    shift 2
done"""


def directory(store: str, workspace_id: str) -> str:
    """Where the copy of one workspace is."""
    return f"{store}/layers/{workspace_id}"


def note(path: str, image: str, parts: list[str]) -> None:
    """Write what is in the copy: the image, and the path inside of each numbered part."""
    user_files.replace(f"{path}/{_NOTE}", json.dumps({"image": image, "parts": parts}))


def _read(home: Home, workspace_id: str) -> dict[str, Any] | None:
    if not home.store:
        return None
    path = f"{directory(home.store, workspace_id)}/{_NOTE}"
    found = user_files.read_json(path, _NOTE_MAX) if os.path.exists(path) else None
    return found if isinstance(found, dict) else None


def image_of(home: Home, workspace_id: str) -> str | None:
    """The id of the image that the container had; None without a copy."""
    found = _read(home, workspace_id)
    return str(found["image"]) if found else None


def adopt(podman: Podman, call: Call, workspace_id: str) -> None:
    """Before a start: move the copy into the container, where there are both."""
    found = _read(podman.home, workspace_id)
    if found is None:
        return
    container = podman.ask(call, "GET", f"/containers/svc-{workspace_id}/json")
    if not isinstance(container, dict):
        return
    places = {str(mount["Destination"]): str(mount["Source"]) for mount in container["Mounts"]}
    places[LAYER] = str(container["GraphDriver"]["Data"]["UpperDir"])
    path = directory(podman.home.store, workspace_id)
    pairs = [
        part
        for number, inside in enumerate(found["parts"])
        if inside in places
        for part in (f"{path}/{number}", places[inside])
    ]
    done = commands.run(podman, call, "podman", "unshare", "sh", "-c", _MOVE, "sh", *pairs)
    if done.status != 0:
        call.log(
            "what was moved cannot be put into the container",
            "error",
            why=done.err[-500:].decode("utf-8", "replace"),
        )
        raise Failure("failed", "what the workspace had in the former store cannot be put in its place")
    forget(podman, call, workspace_id)


def forget(podman: Podman, call: Call, workspace_id: str) -> None:
    """Remove the copy, if there is one."""
    if podman.home.store and os.path.isdir(path := directory(podman.home.store, workspace_id)):
        commands.run(podman, call, "podman", "unshare", "rm", "-rf", "--", path)
