"""crun's own records of running containers, and `crun exec`: fast, and without Podman.

crun records each container's process and bundle below the runtime directory.
With that and Podman's pause process, whose namespaces hold the mounts, `crun
exec` runs a command as a child of the agent in a tenth of `podman exec`'s time.
"""

from __future__ import annotations

import json
import os
from _signal import SIGTERM  # the C half alone: `signal` makes an enumeration of them all
from resource import RLIM_INFINITY, RLIMIT_NOFILE, RLIMIT_NPROC, getrlimit

from svc_helper.agent import user_files
from svc_helper.agent.home import CGROUPS, CRUN, Home
from svc_helper.agent.process import start
from svc_helper.agent.runtime import cgroups, records
from svc_helper.agent.runtime.sealed_crun import Program
from svc_helper.wire.quick_typing import Any, NamedTuple

_NSENTER = "/usr/bin/nsenter"
_STATUS_MAX = 64 * 1024
_CONFIG_MAX = 4 * 1024 * 1024
_HEAD_S = 5
_CHOWN_S = 5
_LIMITS = {
    "Max processes": ("RLIMIT_NPROC", RLIMIT_NPROC),
    "Max open files": ("RLIMIT_NOFILE", RLIMIT_NOFILE),
}
_STOP_SIGNAL = "org.opencontainers.image.stopSignal"  # Podman's annotation


class Running(NamedTuple):
    """A running container as crun records it."""

    container_id: str
    pid: int
    started: int
    bundle: str
    cgroup: str  # its directory; empty when the container has none of its own
    pause_pid: int

    @property
    def run(self) -> str:
        """The id of this run of the container; the next run has another first process."""
        return f"{self.container_id}:{self.started}"


def find_running(home: Home, workspace_id: str) -> Running | None:
    """The workspace's container, if it is in the cache and crun's record of it is valid."""
    record = records.recall(home, workspace_id)
    if record is None or not os.path.exists(CRUN):
        return None
    status = user_files.read_json(f"{home.podman_runtime}/crun/{record.container_id}/status", _STATUS_MAX)
    pause = pause_pid(home)
    if not isinstance(status, dict) or pause is None:
        return None
    pid, bundle, cgroup = status.get("pid"), status.get("bundle"), status.get("cgroup-path")
    if type(pid) is not int or not isinstance(bundle, str) or not isinstance(cgroup, str):
        return None
    started = start_time(pid)
    if started is None or started != status.get("process-start-time"):
        return None
    group = f"{CGROUPS}/{cgroup.strip('/')}" if cgroup.strip("/") else ""
    return Running(record.container_id, pid, started, bundle, group, pause)


def open_first_process(running: Running) -> int:
    """A pidfd of the container's first process; raises ProcessLookupError when it has ended."""
    pidfd = os.pidfd_open(running.pid)
    if start_time(running.pid) != running.started:  # it ended, and its pid was reused
        os.close(pidfd)
        raise ProcessLookupError
    return pidfd


def stop_signal(running: Running) -> int:
    """The signal that asks the container to stop."""
    config = user_files.read_json(f"{running.bundle}/config.json", _CONFIG_MAX)
    annotations = config.get("annotations") if isinstance(config, dict) else None
    number = str(annotations.get(_STOP_SIGNAL) if isinstance(annotations, dict) else "")
    return int(number) if number.isdecimal() and 0 < int(number[:4]) < 65 else SIGTERM


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; with the pid it identifies the process for good."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read(4096).rpartition(b")")[2].split()
    except OSError:
        return None
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return int(fields[19])


def read_config(home: Home, running: Running) -> dict[str, Any] | None:
    """The OCI configuration that the container runs with; None when it cannot be read."""
    path = f"{running.bundle}/config.json"
    config = user_files.read_json(path, _CONFIG_MAX)
    if config is None:  # a container with ids of its own: only the namespace's root may read it
        config = _read_inside(home, running, path)
    return config if isinstance(config, dict) else None


def read_process(home: Home, running: Running) -> dict[str, Any] | None:
    """`process` of the container's configuration: user, capabilities, environment, working directory."""
    process = (read_config(home, running) or {}).get("process")
    return process if isinstance(process, dict) and isinstance(process.get("env"), list) else None


def exec_process(
    running: Running,
    process: dict[str, Any],
    command: list[str],
    mark: str,
    size: tuple[int, int] | None = None,
) -> bytes:
    """The container's own process as JSON, with another command and a mark in its environment.

    With the size of a window (columns, rows) it gets a terminal.
    """
    changed = {"rlimits": _limits(running.pid)} | process
    changed |= {"args": command, "terminal": size is not None}
    changed |= {"env": [*process["env"], f"SVC_EXEC_ID={mark}"]}
    changed.pop("consoleSize", None)
    if size is not None:
        changed["consoleSize"] = {"width": size[0], "height": size[1]}
    return json.dumps(changed).encode()


def _limits(pid: int) -> list[dict[str, str | int]]:
    """The container's limits of processes and open files, at most the agent's own."""
    rows: list[dict[str, str | int]] = []
    with open(f"/proc/{pid}/limits", encoding="ascii") as file:
        for line in file:
            name, values = line[:26].strip(), line[26:].split()
            if name not in _LIMITS or not values[0].isdecimal():
                continue
            ours = getrlimit(_LIMITS[name][1])[1]
            most = 2**63 if ours == RLIM_INFINITY else ours
            soft, hard = (min(int(value), most) if value.isdecimal() else most for value in values[:2])
            rows.append({"type": _LIMITS[name][0], "soft": soft, "hard": hard})
    return rows


def enter_argv(pause_pid: int) -> list[str]:
    """The beginning of a command line that runs in Podman's namespaces, as their root."""
    return [_NSENTER, "--preserve-credentials", "-U", "-m", f"--target={pause_pid}", "--"]


def environment(home: Home) -> dict[str, str]:
    """The environment of nsenter and crun themselves: without a locale, whose files nsenter looks for."""
    return home.environment | {"LANG": "C"}


def may_enter(home: Home, running: Running) -> bool:
    """Whether the agent may move processes into the container's group; True where it has none of its own.

    crun gives the group of a container with ids of its own to that container's root, from 1.21 on at the
    latest. It is taken back, once for each start: the container sees its groups read-only anyway.
    """
    group = running.cgroup
    if not group or cgroups.may_enter(group):
        return True
    try:
        if os.stat(group).st_uid == os.getuid():
            return False
    except OSError:
        return False
    argv = [*enter_argv(running.pause_pid), "/usr/bin/chown", "0:0", group, f"{group}/cgroup.procs"]
    return start(argv, environment(home), {2: None}).finish(_CHOWN_S) == 0 and cgroups.may_enter(group)


def exec_argv(home: Home, running: Running, group: str, program: Program) -> list[str]:
    """`crun exec`, which reads the process from descriptor 3 and writes its errors to descriptor 4."""
    argv = enter_argv(running.pause_pid)
    argv += [program.path, f"--root={home.podman_runtime}/crun", "--log=/proc/self/fd/4", "--log-format=json"]
    argv += ["exec", "--process=/proc/self/fd/3"]
    if group:
        argv += [f"--cgroup={group}"]
    return [*argv, running.container_id]


def pause_pid(home: Home) -> int | None:
    """The process that holds Podman's namespaces, if it runs."""
    try:
        text = user_files.read(f"{home.podman_runtime}/libpod/tmp/pause.pid", 32).decode("ascii").strip()
    except (OSError, ValueError):
        return None
    if not text.isdecimal() or start_time(int(text)) is None:
        return None
    return int(text)


def _read_inside(home: Home, running: Running, path: str) -> Any:
    # `head` starts ten times faster than Python, and an exec waits for it.
    read, write = os.pipe()
    argv = [*enter_argv(running.pause_pid), "/usr/bin/head", "-c", str(_CONFIG_MAX), path]
    try:
        head = start(argv, home.environment, {1: write})
    finally:
        os.close(write)
    with open(read, "rb") as file:
        content = file.read(_CONFIG_MAX)
    head.finish(_HEAD_S)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
