"""The agent's own scope under the user's systemd manager; a shim has one too.

Containers live in the user manager's cgroups, and a process may only be moved
between groups below one that the user owns. From the group in which the helper
starts the agent, crun could not put a command into a container. So the agent
asks the user's manager to move it; only the first exec waits for that.
"""

from __future__ import annotations

import os
import time
from _thread import allocate_lock

from svc_helper.agent.home import Home
from svc_helper.agent.process import Process, start

_WAIT_S = 3
_PAUSE_S = 0.002
_MANAGER = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager")


class Scope:
    """A request for a scope; `wait` returns when the process is in it, or cannot be."""

    def __init__(self, home: Home, kind: str = "svc-agent", child: int = 0) -> None:
        """Request a scope of this name for this process and, if given, one child."""
        pids = [str(pid) for pid in (os.getpid(), child) if pid]
        self._lock = allocate_lock()
        self._process: Process | None = None
        self._name = f"{kind}-{os.getpid()}-{time.monotonic_ns()}.scope"
        if home.systemd:
            argv = ["/usr/bin/env", "busctl", "--user", "--quiet", "call", *_MANAGER, "StartTransientUnit"]
            argv += ["ssa(sv)a(sa(sv))", self._name, "fail", "3"]
            argv += ["PIDs", "au", str(len(pids)), *pids, "Delegate", "b", "true"]
            argv += ["CollectMode", "s", "inactive-or-failed", "0"]
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


def _own_groups() -> str:
    with open("/proc/self/cgroup", encoding="utf-8", errors="replace") as file:
        return file.read()
