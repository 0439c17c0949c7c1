"""Containers whose end nobody wrote down.

Podman learns of an end from the file that conmon writes. When conmon is killed
together with the container (all of a user's processes at once, out of memory),
that file never comes, and the container stays "running" or "stopping", not to
be started again. The agent then writes it in conmon's place.
"""

from __future__ import annotations

import os
from typing import Any

from svc_helper.agent.calls import Call
from svc_helper.agent.containers.container_info import from_inspect
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process
from svc_helper.agent.runtime.crun import start_time

_KILLED = "137"
_CLEANUP_S = 30


def settle(podman: Podman, call: Call, found: dict[str, Any]) -> bool:
    """Write down the end of a container that Podman still holds for running; whether there was need."""
    facts = from_inspect(found)
    container_id, conmon = facts["container_id"], found["State"].get("ConmonPid")
    if facts["status"] != "running" or len(container_id) != 64 or container_id.strip("0123456789abcdef"):
        return False
    if any(type(pid) is int and start_time(pid) is not None for pid in (facts["pid"], conmon)):
        return False
    call.log("a container's end was not written down", "warning", container=container_id)
    try:
        exits = f"{podman.home.runtime}/libpod/tmp/exits/{container_id}"
        fd = os.open(exits, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except OSError:
        return False  # it is there: Podman is about to read it
    with open(fd, "w", encoding="ascii") as file:
        file.write(_KILLED)
    _clean_up(podman, container_id)
    return True


def _clean_up(podman: Podman, container_id: str) -> None:
    """Have Podman forget its mounts: they may have gone with their namespace, and it still counts them."""
    argv = ["/usr/bin/env", "podman", "container", "cleanup", container_id]
    null = (os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)
    process = Process(
        os.posix_spawn(argv[0], argv, podman.home.environment, file_actions=[null], setsid=True)
    )
    if not process.wait(_CLEANUP_S):
        os.kill(process.pid, 9)
    os.waitpid(process.pid, 0)
