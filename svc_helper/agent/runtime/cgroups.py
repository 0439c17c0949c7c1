"""Control groups that the user may divide: made, emptied and removed."""

from __future__ import annotations

import os
import time

from svc_helper.agent.home import CGROUPS

_TRIES = 100
_PAUSE_S = 0.02


def own() -> str:
    """The directory of the agent's own cgroup; empty where there is none to be seen."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            path = next((line[3:].strip() for line in file if line.startswith("0::")), "")
    except (OSError, ValueError):
        return ""
    return f"{CGROUPS}{path.rstrip('/')}" if path else ""


def may_enter(group: str) -> bool:
    """Whether the agent may move its own processes into the group: the nearest group around both decides."""
    here = own()
    if not here:
        return False
    around = os.path.commonpath([here, group])
    return os.access(f"{around}/cgroup.procs", os.W_OK) and os.access(f"{group}/cgroup.procs", os.W_OK)


def make(directory: str) -> bool:
    """Make a group that can be entered and killed; whether that was possible."""
    try:
        os.mkdir(directory)
    except OSError:
        return False
    if may_enter(directory) and os.access(f"{directory}/cgroup.kill", os.W_OK):
        return True
    os.rmdir(directory)
    return False


def kill(directory: str) -> bool:
    """Kill every process in the group until none is left; raises OSError where it cannot be."""
    for _ in range(_TRIES):
        try:
            fd = os.open(f"{directory}/cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(fd, b"1")
            finally:
                os.close(fd)
            with open(f"{directory}/cgroup.events", encoding="ascii") as file:
                if "populated 1" not in file.read():
                    return True
        except FileNotFoundError:
            return True
        time.sleep(_PAUSE_S)
    return False


def remove(directory: str) -> None:
    """Remove the group, if nothing in it was left running on purpose."""
    for _ in range(3):
        try:
            os.rmdir(directory)
        except FileNotFoundError:
            return
        except OSError:
            time.sleep(0.001)  # the last process is still being taken apart
        else:
            return


def sweep(parent: str, prefix: str) -> None:
    """Remove those empty groups below parent whose names begin with prefix."""
    try:
        names = os.listdir(parent)
    except OSError:
        return
    for name in names:
        if name.startswith(prefix):
            try:
                os.rmdir(f"{parent}/{name}")
            except OSError:
                pass  # still in use
