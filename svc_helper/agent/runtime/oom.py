"""Whether the kernel killed a process of a container for memory; Podman's own answer is unreliable.

conmon 2.1.6 reads the container's cgroup after the container has ended, when the user's
manager has removed the scope already. So each workspace has a slice of its own, which
stays and in which the kernel counts kills. The count is stored before a start and
compared after the end. Without systemd nothing limits memory.
"""

from __future__ import annotations

import os
from contextlib import suppress

from svc_helper.agent import paths, user_files
from svc_helper.agent.home import Home
from svc_helper.agent.process import start

_NOTE = "oom_kills"
_NUMBER_MAX = 32  # characters
_WAIT_S = 3


def slice_of(workspace_id: str) -> str:
    """The slice of a workspace's container; a dash in its name would nest it in another slice."""
    return f"svc-{workspace_id.replace('-', '')}.slice"


def note(home: Home, workspace_id: str) -> None:
    """Store the number of kills so far, before the container starts."""
    if not home.systemd:
        return
    directory = paths.workspace(home.home, workspace_id)
    os.makedirs(directory, 0o700, exist_ok=True)
    user_files.replace(f"{directory}/{_NOTE}", f"{_kills(home, workspace_id)}\n")


def happened(home: Home, workspace_id: str) -> bool:
    """Whether the kernel killed a process of the container since note()."""
    if not home.systemd:
        return False
    noted = 0
    with suppress(OSError, ValueError):
        path = f"{paths.workspace(home.home, workspace_id)}/{_NOTE}"
        noted = int(user_files.read(path, _NUMBER_MAX))
    return _kills(home, workspace_id) > noted


def forget(home: Home, workspace_id: str) -> None:
    """Have the user's manager stop the slice of a removed container, if there is one."""
    if not home.systemd or not os.path.isdir(_directory(home, workspace_id)):
        return
    argv = ["/usr/bin/env", "systemctl", "--user", "--quiet", "--no-block", "stop", slice_of(workspace_id)]
    with suppress(OSError):
        start(argv, home.environment).finish(_WAIT_S)


def _directory(home: Home, workspace_id: str) -> str:
    return f"{home.manager_group}/svc.slice/{slice_of(workspace_id)}"


def _kills(home: Home, workspace_id: str) -> int:
    """Processes that the kernel killed for memory in the slice so far; 0 without a slice."""
    with suppress(OSError, ValueError):
        path = f"{_directory(home, workspace_id)}/memory.events"
        for line in user_files.read(path, 4096).decode("ascii").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0
