"""Whether the kernel ended a container for its memory: Podman's own word for it is not to be relied on.

conmon 2.1.6 looks into the container's cgroup when the container has ended, and the
user's manager has removed the scope by then. So each workspace has a slice of its own
there, which stays, and in which the kernel counts what it killed below it. The count is
noted before a start and compared after an end. Without systemd nothing limits memory.
"""

from __future__ import annotations

import os
from contextlib import suppress

from svc_helper import atomic_file
from svc_helper.agent import paths
from svc_helper.agent.home import CGROUPS, Home
from svc_helper.agent.process import Process
from svc_helper.agent.runtime import records

_NOTE = "oom_kills"
_NUMBER_MAX = 32  # characters
_WAIT_S = 3


def slice_of(workspace_id: str) -> str:
    """The slice of a workspace's container: a dash in the name would be another one above it."""
    return f"svc-{workspace_id.replace('-', '')}.slice"


def note(home: Home, workspace_id: str) -> None:
    """Remember how much was killed so far, before the container starts."""
    if not home.systemd:
        return
    directory = paths.workspace(home.home, workspace_id)
    os.makedirs(directory, 0o700, exist_ok=True)
    content = f"{_kills(home, workspace_id)}\n".encode()
    atomic_file.replace(f"{directory}/{_NOTE}", content, durable=False)


def happened(home: Home, workspace_id: str) -> bool:
    """Whether the kernel killed something in the container since note()."""
    if not home.systemd:
        return False
    noted = 0
    with suppress(OSError, ValueError):
        path = f"{paths.workspace(home.home, workspace_id)}/{_NOTE}"
        noted = int(records.read(path, _NUMBER_MAX))
    return _kills(home, workspace_id) > noted


def forget(home: Home, workspace_id: str) -> None:
    """Have the user's manager end the slice of a container that is removed, if there is one."""
    if not home.systemd or not os.path.isdir(_directory(home, workspace_id)):
        return
    argv = ["/usr/bin/env", "systemctl", "--user", "--quiet", "--no-block", "stop", slice_of(workspace_id)]
    with suppress(OSError):
        process = Process(os.posix_spawn(argv[0], argv, home.environment))
        process.wait(_WAIT_S)
        process.ended()


def _directory(home: Home, workspace_id: str) -> str:
    manager = f"{CGROUPS}/user.slice/user-{home.uid}.slice/user@{home.uid}.service"
    return f"{manager}/svc.slice/{slice_of(workspace_id)}"


def _kills(home: Home, workspace_id: str) -> int:
    """Processes that the kernel killed for memory in that slice since it is there; 0 without one."""
    with suppress(OSError, ValueError):
        path = f"{_directory(home, workspace_id)}/memory.events"
        for line in records.read(path, 4096).decode("ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0
