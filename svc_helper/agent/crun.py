"""Running containers as crun itself records them, and its exec: quick, and without Podman.

crun notes each container's process and bundle below the runtime directory. With
that and Podman's pause process, whose namespaces hold the mounts, `crun exec`
runs a command as a child of the agent in a tenth of `podman exec`'s time.
"""

from __future__ import annotations

import json
import os
from typing import Any, NamedTuple

from svc_helper.agent import records
from svc_helper.agent.home import CGROUPS, CRUN, Home

_NSENTER = "/usr/bin/nsenter"
_STATUS_MAX = 64 * 1024
_CONFIG_MAX = 4 * 1024 * 1024


class Running(NamedTuple):
    """A running container by crun's own record."""

    container_id: str
    pid: int
    bundle: str
    cgroup: str  # its directory; empty when it has none of its own
    pause_pid: int


def find_running(home: Home, workspace_id: str) -> Running | None:
    """The workspace's container, if it was remembered and crun's record of it holds."""
    record = records.recall(home, workspace_id)
    if record is None or not os.path.exists(CRUN):
        return None
    status = _read_json(f"{home.runtime}/crun/{record.container_id}/status", _STATUS_MAX)
    pause = pause_pid(home)
    if not isinstance(status, dict) or pause is None:
        return None
    pid, bundle, cgroup = status.get("pid"), status.get("bundle"), status.get("cgroup-path")
    if type(pid) is not int or not isinstance(bundle, str) or not isinstance(cgroup, str):
        return None
    if start_time(pid) != status.get("process-start-time"):
        return None
    own = f"{CGROUPS}/{cgroup.strip('/')}" if cgroup.strip("/") else ""
    return Running(record.container_id, pid, bundle, own, pause)


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot: with the pid it names the process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def read_process(home: Home, running: Running) -> dict[str, Any] | None:
    """The `process` of the container's own configuration: user, capabilities, environment, directory."""
    path = f"{running.bundle}/config.json"
    config = _read_json(path, _CONFIG_MAX)
    if config is None:  # a container with ids of its own keeps it from us, but not from the namespace's root
        config = _read_inside(home, running, path)
    process = config.get("process") if isinstance(config, dict) else None
    return process if isinstance(process, dict) and isinstance(process.get("env"), list) else None


def exec_process(process: dict[str, Any], command: list[str], mark: str) -> bytes:
    """The container's own process with another command and a mark in its environment."""
    made = process | {"args": command, "terminal": False, "env": [*process["env"], f"SVC_EXEC_ID={mark}"]}
    made.pop("consoleSize", None)
    return json.dumps(made).encode()


def enter_argv(pause_pid: int) -> list[str]:
    """The start of a command line that goes on in Podman's namespaces, as their root."""
    return [_NSENTER, "--preserve-credentials", "-U", "-m", f"--target={pause_pid}", "--"]


def exec_argv(home: Home, running: Running, group: str) -> list[str]:
    """crun's exec: the process description on descriptor 3, crun's own complaints to descriptor 4."""
    argv = enter_argv(running.pause_pid)
    argv += [CRUN, f"--root={home.runtime}/crun", "--log=/proc/self/fd/4", "--log-format=json", "exec"]
    argv += ["--process=/proc/self/fd/3"]
    if group:
        argv += [f"--cgroup={group}"]
    return [*argv, running.container_id]


def pause_pid(home: Home) -> int | None:
    """The process that holds Podman's namespaces, if it lives."""
    try:
        with open(f"{home.runtime}/libpod/tmp/pause.pid", encoding="ascii") as file:
            text = file.read(32).strip()
    except (OSError, ValueError):
        return None
    if not text.isdecimal() or start_time(int(text)) is None:
        return None
    return int(text)


def _read_json(path: str, limit: int) -> Any:
    """The JSON in a file that the user can write too; None for anything that it should not be."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        with open(fd, "rb") as file:
            return json.loads(file.read(limit))
    except (OSError, ValueError, RecursionError):
        return None


def _read_inside(home: Home, running: Running, path: str) -> Any:
    read, write = os.pipe()
    argv = [*enter_argv(running.pause_pid), "/usr/bin/head", "-c", str(_CONFIG_MAX), path]
    try:
        actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
        pid = os.posix_spawn(argv[0], argv, home.environment, file_actions=actions)
    finally:
        os.close(write)
    with open(read, "rb") as file:
        content = file.read(_CONFIG_MAX)
    os.waitpid(pid, 0)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
