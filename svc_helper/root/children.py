"""The helper's child processes: forked with what they need, watched by pidfd, killed when late."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from svc_helper.root.log import log


class Child(NamedTuple):
    """A running child and what its end means to somebody."""

    pid: int
    deadline: float | None
    ended: Callable[[int], None]  # called with the exit code; negative: the signal


class Children:
    """All children of the helper; its poll object tells when one has ended."""

    def __init__(self, poll: select.poll) -> None:
        self.poll = poll
        self.running: dict[int, Child] = {}

    def fork(
        self,
        work: Callable[[], None],
        ended: Callable[[int], None],
        *,
        keep: Sequence[int] = (),
        deadline_s: int | None = None,
    ) -> None:
        """Run `work` in a child that holds only 0, 1, 2 and `keep`; raises OSError when there can be none."""
        pid = os.fork()
        if pid == 0:
            _child(work, keep, deadline_s)
        try:
            pidfd = os.pidfd_open(pid)
        except OSError:  # no descriptor is left; nobody would ever wait for it
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise
        deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self.running[pidfd] = Child(pid, deadline, ended)
        self.poll.register(pidfd, select.POLLIN)

    def reap(self, pidfd: int) -> None:
        """Take note of the end of the child behind a readable pidfd."""
        child = self.running.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(child.pid, 0)
        child.ended(os.waitstatus_to_exitcode(status))

    def next_deadline(self) -> float | None:
        """When the next child is late."""
        deadlines = [child.deadline for child in self.running.values() if child.deadline is not None]
        return min(deadlines, default=None)

    def kill_late(self) -> None:
        """End the children whose time is over; their pidfds then say so."""
        now = time.monotonic()
        for pidfd, child in list(self.running.items()):
            if child.deadline is not None and child.deadline <= now:
                log("a child took too long and is killed", "error", pid=child.pid)
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                self.running[pidfd] = child._replace(deadline=None)


def _child(work: Callable[[], None], keep: Sequence[int], deadline_s: int | None) -> None:
    """The child's whole life; never returns into the helper's loop."""
    code = 1
    try:
        os.setsid()
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):  # ignored here, and an exec keeps that
            signal.signal(number, signal.SIG_DFL)
        _close_but(keep)
        if deadline_s is not None:
            signal.alarm(deadline_s)  # also when the helper dies before it could be the killer
        work()
        code = 0
    except Exception as error:  # noqa: BLE001  the process ends here; its reason goes to the log
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
