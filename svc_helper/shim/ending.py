"""Ends everything that a launcher started: asked first, killed after its grace.

In a cgroup of their own the processes are all to be seen, however often they
forked; elsewhere another program looks for their mark (agent/sweep.py).
Nothing here waits: the shim forwards ports meanwhile.
"""

from __future__ import annotations

import os
import time
from _signal import SIGKILL, SIGTERM, pidfd_send_signal
from collections.abc import Callable

from svc_helper.agent.process import Process
from svc_helper.agent.runtime.process_tracker import PREFIX, ProcessTracker
from svc_helper.shim.loop import IN
from svc_helper.shim.workspace import Workspace

_LOOK_S = 0.02
_KILL_S = 10  # to be gone after KILL: then something hangs in the kernel
_GROUPS_MAX = 256  # that a launcher may have made below its own
_PIDS_MAX = 512 * 1024  # bytes of a list of processes


class Ending:
    """One launcher's end under way; `done` is told whether nothing of it is left."""

    def __init__(
        self,
        workspace: Workspace,
        mark: str,
        group: str,
        starter: Process | None,
        done: Callable[[bool], None],
    ) -> None:
        """`starter` is crun, which ends by itself after what it started."""
        self._workspace, self._group, self._starter = workspace, group, starter
        self._mark = mark
        self._done = done
        self._until = 0.0

    def begin(self, grace_s: float) -> None:
        """Ask them to end; without a grace kill them at once."""
        self._until = time.monotonic() + grace_s
        if self._group:
            if grace_s:
                ask(self._group, self._starter.pid if self._starter else 0)
            self._look()
            return
        tracker = ProcessTracker(self._workspace.home, self._mark, "", by_crun=False)
        pid = tracker.start_sweep(grace_s or None)
        if pid is None:
            self._done(False)
            return
        sweep = Process(pid)
        self._workspace.loop.watch(sweep.pidfd, IN, lambda events: self._swept(sweep))

    def _look(self) -> None:
        late_s = time.monotonic() - self._until
        if not populated(self._group) and not self._starts():
            self._done(True)
            return
        if late_s > _KILL_S:
            self._done(False)
            return
        if late_s >= 0:
            kill(self._group)
            self._kill_starter(late_s)
        self._workspace.loop.later(_LOOK_S, self._look)

    def _swept(self, sweep: Process) -> None:
        self._workspace.loop.unwatch(sweep.pidfd)
        clean = sweep.ended() == 0
        self._until = time.monotonic()
        self._await_starter(clean)

    def _await_starter(self, clean: bool) -> None:
        if not self._starts():
            self._done(clean)
            return
        self._kill_starter(time.monotonic() - self._until)
        self._workspace.loop.later(_LOOK_S, lambda: self._await_starter(clean))

    def _kill_starter(self, late_s: float) -> None:
        if late_s > _KILL_S / 2 and self._starter is not None and self._starts():
            _signal(self._starter.pidfd, SIGKILL)

    def _starts(self) -> bool:
        """Whether crun is still there; it is reaped by whoever started it."""
        return self._starter is not None and not self._starter.wait(0)


def is_group(path: str, mark: str) -> bool:
    """Whether the path in a file of the user's is that of a launcher's group."""
    return path.startswith("/sys/fs/cgroup/") and path.endswith(f"/{PREFIX}{mark}") and "/../" not in path


def populated(group: str) -> bool:
    """Whether a process is in the group or below; one that is gone has none."""
    try:
        with open(f"{group}/cgroup.events", encoding="ascii") as file:
            return "populated 1" in file.read(4096)
    except OSError:
        return False


def kill(group: str) -> None:
    """KILL for all of them at once."""
    try:
        fd = os.open(f"{group}/cgroup.kill", os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return
    try:
        os.write(fd, b"1")
    except OSError:
        pass
    finally:
        os.close(fd)


def ask(group: str, spared: int) -> None:
    """TERM for each of them but crun, which is to tell how its command ended."""
    held: dict[int, int] = {}
    try:
        for pid in _members(group) - {spared}:
            try:
                held[pid] = os.pidfd_open(pid)
            except OSError:
                continue  # it has ended, or no descriptors are left
        for pid in _members(group) & held.keys():  # held before this look: it is that very process
            _signal(held[pid], SIGTERM)
    finally:
        for pidfd in held.values():
            os.close(pidfd)


def _signal(pidfd: int, number: int) -> None:
    try:
        pidfd_send_signal(pidfd, number)
    except OSError:
        pass  # it has ended


def _members(group: str) -> set[int]:
    found: set[int] = set()
    for number, (directory, _, _) in enumerate(os.walk(group)):
        if number >= _GROUPS_MAX:
            break
        try:
            with open(f"{directory}/cgroup.procs", encoding="ascii") as file:
                found.update(int(word) for word in file.read(_PIDS_MAX).split() if word != "0")
        except (OSError, ValueError):
            continue
    return found
