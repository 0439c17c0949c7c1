"""Containers whose end, or whose removal, was interrupted.

Podman learns of a container's end from a file that conmon writes. When conmon
is killed together with the container (all of a user's processes, out of memory),
the file is missing: the container stays "running" or "stopping" and cannot be
started again. The agent then writes the file instead of conmon.

When Podman is killed while it removes a container, the container stays "removing", with or without
its parts of the storage. Podman may fail to inspect it, but goes on when it is asked to remove it again;
it waits for a removal that is still under way.
"""

from __future__ import annotations

import os

from svc_helper.agent.calls import Call
from svc_helper.agent.containers.container_info import from_inspect
from svc_helper.agent.containers.spec import LABEL, container_name
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import start
from svc_helper.agent.runtime.crun import start_time
from svc_helper.wire.quick_typing import Any

_KILLED = "137"
_CLEANUP_S = 30
REMOVING = "removing"


def record_end(podman: Podman, call: Call, found: dict[str, Any]) -> bool:
    """Record the end of a container that Podman wrongly considers running; whether that was so."""
    facts = from_inspect(found)
    container_id, conmon = facts["container_id"], found["State"].get("ConmonPid")
    if facts["status"] != "running" or len(container_id) != 64 or container_id.strip("0123456789abcdef"):
        return False
    if any(type(pid) is int and start_time(pid) is not None for pid in (facts["pid"], conmon)):
        return False
    call.log("a container's end was not recorded", "warning", container=container_id)
    try:
        exits = f"{podman.home.podman_runtime}/libpod/tmp/exits/{container_id}"
        fd = os.open(exits, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False  # it exists: Podman is about to read it
    with open(fd, "w", encoding="ascii") as file:
        file.write(_KILLED)
    _clean_up(podman, container_id)
    return True


def is_removing(podman: Podman, call: Call, workspace_id: str) -> bool:
    """Whether Podman lists the container as one that is being removed: it lists what it cannot inspect."""
    only = f"%7B%22label%22%3A%5B%22{LABEL}%3D{workspace_id}%22%5D%7D"  # {"label":["svc.workspace=ws-..."]}
    rows = podman.ask(call, "GET", f"/containers/json?all=true&filters={only}")
    name = container_name(workspace_id)  # beside it there may be one that is to replace it
    own = [row for row in rows if name in (row.get("Names") or ())] if isinstance(rows, list) else []
    return [str(row.get("State")).lower() for row in own] == [REMOVING]


def end_removal(podman: Podman, call: Call, workspace_id: str) -> None:
    """Complete the removal of a container that is "removing"."""
    call.log("a removal was interrupted, and is completed", "warning", id=workspace_id)
    podman.remove_container(call, container_name(workspace_id))


def _clean_up(podman: Podman, container_id: str) -> None:
    """Have Podman drop its mounts: they may be lost with their namespace, and it still counts them."""
    argv = ["/usr/bin/env", "podman", "container", "cleanup", container_id]
    start(argv, podman.home.environment, {1: None}, setsid=True).finish(_CLEANUP_S)
