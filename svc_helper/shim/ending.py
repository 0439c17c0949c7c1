"""Ends all processes of a launcher: TERM first, KILL after the grace period.

In a cgroup of their own all of them can be found, however often they forked;
elsewhere another program searches for their mark (agent/runtime/kill_marked.py).
Nothing here blocks: the shim forwards ports meanwhile.
"""

from __future__ import annotations

import os
import time
from _signal import SIGKILL, SIGTERM, pidfd_send_signal
from collections.abc import Callable
from contextlib import suppress

from svc_helper.agent.process import Process
from svc_helper.agent.runtime import cgroups
from svc_helper.agent.runtime.process_tracker import PREFIX, ProcessTracker
from svc_helper.shim.loop import IN
from svc_helper.shim.workspace import Workspace

_POLL_S = 0.02
_KILL_S = 10  # after KILL; longer means a process hangs in the kernel
_GROUPS_MAX = 256  # below the launcher's own
_PIDS_MAX = 512 * 1024  # bytes of a list of processes


class Ending:
    """The ending of one launcher; `done` is called with whether no process is left."""

    def __init__(
        self,
        workspace: Workspace,
        mark: str,
        group: str,
        starter: Process | None,
        done: Callable[[bool], None],
    ) -> None:
        """`starter` is crun, which exits by itself after the command."""
        self._workspace, self._group, self._starter = workspace, group, starter
        self._mark = mark
        self._done = done
        self._until = 0.0

    def begin(self, grace_s: float) -> None:
        """Send TERM, or without a grace period KILL."""
        self._until = time.monotonic() + grace_s
        if self._group:
            if grace_s:
                terminate(self._group, self._starter.pid if self._starter else 0)
            self._poll()
            return
        tracker = ProcessTracker(self._workspace.home, self._mark, "", by_crun=False)
        killer = tracker.start_kill(grace_s or None)
        if killer is None:
            self._done(False)
            return
        self._workspace.loop.watch(killer.pidfd, IN, lambda events: self._killed(killer))

    def _poll(self) -> None:
        late_s = time.monotonic() - self._until
        if not cgroups.is_populated(self._group) and not self._starter_runs():
            self._done(True)
            return
        if late_s > _KILL_S:
            self._done(False)
            return
        if late_s >= 0:
            with suppress(OSError):
                cgroups.send_kill(self._group)
            self._kill_starter(late_s)
        self._workspace.loop.later(_POLL_S, self._poll)

    def _killed(self, killer: Process) -> None:
        self._workspace.loop.unwatch(killer.pidfd)
        clean = killer.ended() == 0
        self._until = time.monotonic()
        self._await_starter(clean)

    def _await_starter(self, clean: bool) -> None:
        if not self._starter_runs():
            self._done(clean)
            return
        self._kill_starter(time.monotonic() - self._until)
        self._workspace.loop.later(_POLL_S, lambda: self._await_starter(clean))

    def _kill_starter(self, late_s: float) -> None:
        if late_s > _KILL_S / 2 and self._starter is not None and self._starter_runs():
            _signal(self._starter.pidfd, SIGKILL)

    def _starter_runs(self) -> bool:
        """Whether crun is still running; the launcher reaps it."""
        return self._starter is not None and not self._starter.wait(0)


def is_group(path: str, mark: str) -> bool:
    """Whether an untrusted path is that of the launcher's group."""
    return path.startswith("/sys/fs/cgroup/") and path.endswith(f"/{PREFIX}{mark}") and "/../" not in path


def terminate(group: str, spared: int) -> None:
    """Send TERM to each process of the group but crun, which must report the command's exit status."""
    held: dict[int, int] = {}
    try:
        for pid in _members(group) - {spared}:
            try:
                held[pid] = os.pidfd_open(pid)
            except OSError:
                continue  # it has ended, or the descriptors are used up
        for pid in _members(group) & held.keys():  # listed again after pidfd_open(): not a reused pid
            _signal(held[pid], SIGTERM)
    finally:
        for pidfd in held.values():
            os.close(pidfd)


def _signal(pidfd: int, number: int) -> None:
    with suppress(OSError):  # it has ended
        pidfd_send_signal(pidfd, number)


def _members(group: str) -> set[int]:
    found: set[int] = set()
    for number, (directory, _, _) in enumerate(os.walk(group)):
        if number >= _GROUPS_MAX:
            break
        try:
            with open(f"{directory}/cgroup.procs", encoding="ascii") as file:
                found.update(int(pid) for pid in file.read(_PIDS_MAX).split() if pid != "0")
        except (OSError, ValueError):
            continue
    return found
