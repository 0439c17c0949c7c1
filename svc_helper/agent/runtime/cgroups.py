"""Control groups that the user may divide: created, killed and removed."""

from __future__ import annotations

import os
import time
from contextlib import suppress

from svc_helper.agent.home import CGROUPS

_TRIES = 100
_PAUSE_S = 0.02
_READ_MAX = 16 * 1024


def path_of(pid: int | str) -> str:
    """A process's path among the cgroups; empty where there is none to be seen."""
    try:
        with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
            lines = file.read(_READ_MAX).splitlines()
    except OSError:
        return ""
    return next((line[3:].strip() for line in lines if line.startswith("0::")), "")


def own() -> str:
    """The directory of the agent's own cgroup; empty where there is none to be seen."""
    path = path_of("self")
    return f"{CGROUPS}{path.rstrip('/')}" if path else ""


def may_enter(group: str) -> bool:
    """Whether the agent may move its own processes into the group: write access to their common ancestor."""
    here = own()
    if not here:
        return False
    ancestor = os.path.commonpath([here, group])
    return os.access(f"{ancestor}/cgroup.procs", os.W_OK) and os.access(f"{group}/cgroup.procs", os.W_OK)


def create(directory: str) -> bool:
    """Create a group that can be entered and killed; False where that is not possible."""
    try:
        os.mkdir(directory)
    except OSError:
        return False
    if may_enter(directory) and os.access(f"{directory}/cgroup.kill", os.W_OK):
        return True
    os.rmdir(directory)
    return False


def is_populated(directory: str) -> bool:
    """Whether a process is in the group or below it; False for a group that does not exist."""
    try:
        with open(f"{directory}/cgroup.events", encoding="ascii") as file:
            return "populated 1" in file.read(4096)
    except OSError:
        return False


def send_kill(directory: str) -> None:
    """Send KILL to all processes of the group at once; raises OSError."""
    fd = os.open(f"{directory}/cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"1")
    finally:
        os.close(fd)


def kill(directory: str) -> bool:
    """Kill the processes of the group until none is left; False if some remain. Raises OSError."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError):
            send_kill(directory)
        if not is_populated(directory):
            return True
        time.sleep(_PAUSE_S)
    return False


def remove(directory: str) -> None:
    """Remove the group, unless processes were left running in it on purpose."""
    for _ in range(3):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.001)  # the kernel is still removing the last process
        else:
            return


def remove_stale_groups(parent: str, prefix: str) -> None:
    """Remove the empty groups below parent whose names begin with prefix."""
    with suppress(OSError):
        for name in os.listdir(parent):
            if name.startswith(prefix):
                with suppress(OSError):  # still in use
                    os.rmdir(f"{parent}/{name}")
