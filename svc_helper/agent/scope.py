"""The agent's own scope under the user's systemd manager; a shim has one too.

Containers live in the user manager's cgroups, and a process may only be moved
between groups below one that the user owns. From the group in which the helper
starts the agent, crun could not put a command into a container. So the agent
asks the user's manager to move it; only the first exec waits for that.

A shim's scope comes after its container's, conmon's and Podman's: at a shutdown of the host the
manager ends it first, and waits while the shim ends the launchers. It is told so by END_SIGNAL, which
everything else in the scope ignores: each crun there would pass a TERM on to its launcher,
which then had two of them.
"""

from __future__ import annotations

import os
import time
from _signal import SIGURG
from _thread import allocate_lock

from svc_helper.agent.home import Home
from svc_helper.agent.process import Process, start

END_SIGNAL = SIGURG
_WAIT_S = 3
_PAUSE_S = 0.002
_SCOPES_MAX = 64  # of Podman, in one request
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")


class Scope:
    """A request for a scope; `wait` returns when the process is in it, or cannot be."""

    def __init__(self, home: Home, kind: str = "svc-agent", child: int = 0, container: int = 0) -> None:
        """Request a scope of this name for this process and, if given, one child.

        With the first process of a container it comes after that container's scope.
        """
        pids = [str(pid) for pid in (os.getpid(), child) if pid]
        self._lock = allocate_lock()
        self._process: Process | None = None
        self._name = f"{kind}-{os.getpid()}-{time.monotonic_ns()}.scope"
        if home.systemd:
            properties = [["PIDs", "au", str(len(pids)), *pids], ["Delegate", "b", "true"]]
            properties += [["CollectMode", "s", "inactive-or-failed"]]
            if scopes := _scopes_of(container, home.manager_group) if container else ():
                properties += [["After", "as", str(len(scopes)), *scopes]]
                properties += [["KillSignal", "i", str(int(END_SIGNAL))]]
            argv = ["/usr/bin/env", "busctl", "--user", "--quiet", "call", *_MANAGER, "StartTransientUnit"]
            argv += ["ssa(sv)a(sa(sv))", self._name, "fail", str(len(properties))]
            argv += [part for one in properties for part in one] + ["0"]
            self._process = start(argv, home.environment)

    def wait(self) -> None:
        """Wait until this process is in its scope, or the request has failed or timed out."""
        with self._lock:
            process, self._process = self._process, None
            if process is None or not process.wait(_WAIT_S) or process.ended() != 0:
                return
            until = time.monotonic() + _WAIT_S
            while self._name not in _own_groups() and time.monotonic() < until:
                time.sleep(_PAUSE_S)  # the manager has only queued the job


def _scopes_of(container: int, manager_group: str) -> list[str]:
    """The units of a container's first process, of its parent, conmon, and of Podman, in the user's manager.

    conmon passes the TERM of its own end on to the container. In Podman's units are the programs that
    serve the container's root (fuse-overlayfs) and its network.
    """
    found = []
    for pid in (container, _parent_of(container)):
        try:
            with open(f"/proc/{pid}/cgroup", encoding="utf-8", errors="replace") as file:
                below = ("\n" + file.read()).partition("\n0::")[2].partition("/user@")[2]
        except OSError:
            continue
        found += [name.strip() for name in below.split("/") if name.strip().endswith(".scope")]
    return list(dict.fromkeys([*found, *_podman_scopes(manager_group)]))


def _podman_scopes(manager_group: str) -> list[str]:
    """The scopes into which Podman has moved its own processes."""
    try:
        names = os.listdir(f"{manager_group}/user.slice")
    except OSError:
        return []
    return sorted(name for name in names if name.startswith("podman-") and name.endswith(".scope"))[
        :_SCOPES_MAX
    ]


def _parent_of(pid: int) -> int:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read(4096).rpartition(b")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _own_groups() -> str:
    with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        return file.read()
