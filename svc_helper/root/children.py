"""The helper's child processes: forked with the descriptors they need, watched by pidfd, killed when late."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from svc_helper.root.log import LimitedLog, log

HELD_S = 1.0  # until the next attempt to reap a child that its tracer holds
Work = Callable[[], None]
Ended = Callable[[int], None]


class Child(NamedTuple):
    """A running child, its deadline and its callback."""

    pid: int
    deadline: float | None
    ended: Ended  # called with the exit status; negative: the signal


class Children:
    """All children of the helper; the pidfd of each is registered with the poll object."""

    def __init__(self, poll: select.poll, limited: LimitedLog) -> None:
        self.poll = poll
        self.log = limited
        self.running: dict[int, Child] = {}
        self.held: list[Child] = []  # ended, but a tracer may keep one from its parent: nothing waits for it

    def fork(
        self, work: Work, ended: Ended, *, source: str, keep: Sequence[int] = (), deadline_s: int = 0
    ) -> None:
        """Run `work` in a child that has only 0, 1, 2 and `keep` open; raises OSError without a child.

        It logs its failure while that source has room in the log, which its callback's line takes.
        """
        speaks = self.log.has_room(source)
        pid = os.fork()
        if pid == 0:
            _child(work, keep, deadline_s, speaks)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # no descriptor is left: the child could not be watched
            os.kill(pid, signal.SIGKILL)
            self.held.append(Child(pid, None, lambda code: None))
            raise
        deadline = time.monotonic() + deadline_s if deadline_s else None
        self.running[pidfd] = Child(pid, deadline, ended)
        self.poll.register(pidfd, select.POLLIN)

    def reap(self, pidfd: int) -> None:
        """Reap the child of a readable pidfd and call its callback, now or once its tracer lets it go."""
        child = self.running.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        self.held.append(child)
        self.reap_held()

    def reap_held(self) -> None:
        """Reap the children that have ended, except those that are still held."""
        held, self.held = self.held, []
        for child in held:
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                child.ended(os.waitstatus_to_exitcode(status))
            else:
                self.held.append(child)

    def next_deadline(self) -> float | None:
        """The earliest deadline of a child, or the next attempt to reap one."""
        deadlines = [child.deadline for child in self.running.values() if child.deadline is not None]
        return min([*deadlines, time.monotonic() + HELD_S] if self.held else deadlines, default=None)

    def kill_late(self) -> None:
        """Kill the children whose deadline has passed; their pidfds become readable."""
        now = time.monotonic()
        for pidfd, child in list(self.running.items()):
            if child.deadline is not None and child.deadline <= now:
                log("a child exceeded its deadline and is killed", "error", pid=child.pid)
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                self.running[pidfd] = child._replace(deadline=None)


def _child(work: Work, keep: Sequence[int], deadline_s: int, speaks: bool) -> None:
    """Run the child; never returns into the helper's loop."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)  # ignored by the helper, and exec would keep that
        _close_but(keep)
        signal.alarm(deadline_s)  # in case the helper dies first
        work()
        code = 0
    except Exception as error:  # noqa: BLE001  the process ends here; the log gets the reason
        if speaks:
            log("a child failed", "error", why=f"{type(error).__name__}: {error}")
    finally:
        os._exit(code)


def _close_but(keep: Sequence[int]) -> None:
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(null, 0)
    os.dup2(null, 1)
    low = 3
    for fd in sorted(keep):
        os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, os.sysconf("SC_OPEN_MAX"))
