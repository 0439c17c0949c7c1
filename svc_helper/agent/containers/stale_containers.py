"""Containers whose end, or whose removal, was interrupted.

Podman learns of a container's end from a file that conmon writes. When conmon
is killed together with the container (all of a user's processes, out of memory),
the file is missing: the container stays "running" or "stopping" and cannot be
started again. The agent then writes the file instead of conmon.

When Podman is killed while it removes a container, the container stays "removing", with or without
its parts of the storage. Podman may fail to inspect it, but goes on when it is asked to remove it again;
it waits for a removal that is still under way.

When the user's directory in /run/user is emptied, Podman takes its containers for stopped, as after a
reboot, while their processes run on. They are ended before the container is started, stopped or removed.
"""

from __future__ import annotations

import os
import select
from _signal import SIGKILL, pidfd_send_signal

from svc_helper.agent.calls import Call
from svc_helper.agent.containers.container_info import from_inspect
from svc_helper.agent.containers.spec import LABEL, container_name
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import start
from svc_helper.agent.runtime.crun import start_time
from svc_helper.wire.quick_typing import Any

_KILLED = "137"
_CLEANUP_S = 30
_KILL_S = 10
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


def find_processes(workspace_id: str) -> list[int]:
    """conmon and first process of a run of the workspace's container, whether Podman knows of it or not."""
    option = f"\0-n\0{container_name(workspace_id)}\0".encode()
    for conmon in (int(entry) for entry in os.listdir("/proc") if entry.isdecimal()):
        if _is_conmon_with(option, conmon):
            first = [pid for pid in _children(conmon) if _is_contained(pid)]
            if first:  # else it is about to end
                return [conmon, *first]
    return []


def end_processes(call: Call, pids: list[int]) -> None:
    """Kill what find_processes() found, of a run that Podman does not know of."""
    call.log("the processes of a forgotten run of a container are killed", "warning", pids=pids)
    for pid in pids:  # conmon first: it would record the end as that of the next run
        _kill(call, pid)


def _is_conmon_with(option: bytes, pid: int) -> bool:
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.getuid():  # first: most processes are another's
            return False
        with open(f"/proc/{pid}/comm", "rb") as file:
            if file.read(64) != b"conmon\n":
                return False
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return option in file.read()
    except OSError:
        return False


def _children(pid: int) -> list[int]:
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
            return [int(child) for child in file.read().split()]
    except OSError:
        return []


def _is_contained(pid: int) -> bool:
    """Whether the process has a pid namespace of its own, as no Podman has that conmon has started."""
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") != os.readlink("/proc/self/ns/pid")
    except OSError:
        return False


def _kill(call: Call, pid: int) -> None:
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        pidfd_send_signal(pidfd, SIGKILL)
        call.wait({pidfd: select.POLLIN}, _KILL_S)
    except OSError:
        pass
    finally:
        os.close(pidfd)


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
