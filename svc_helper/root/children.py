"""The helper's child processes: forked with the descriptors they need, watched by pidfd, killed when late."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from svc_helper.root.log import LimitedLog, log


class Child(NamedTuple):
    """A running child, its deadline and its callback."""

    pid: int
    deadline: float | None
    ended: Callable[[int], None]  # called with the exit status; negative: the signal


class Children:
    """All children of the helper; the pidfd of each is registered with the poll object."""

    def __init__(self, poll: select.poll, limited: LimitedLog) -> None:
        self.poll = poll
        self.log = limited
        self.running: dict[int, Child] = {}

    def fork(
        self,
        work: Callable[[], None],
        ended: Callable[[int], None],
        *,
        source: str,
        keep: Sequence[int] = (),
        deadline_s: int | None = None,
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
            os.waitpid(pid, 0)
            raise
        deadline = None if deadline_s is None else time.monotonic() + deadline_s
        self.running[pidfd] = Child(pid, deadline, ended)
        self.poll.register(pidfd, select.POLLIN)

    def reap(self, pidfd: int) -> None:
        """Reap the child of a readable pidfd and call its callback."""
        child = self.running.pop(pidfd)
        self.poll.unregister(pidfd)
        os.close(pidfd)
        _, status = os.waitpid(child.pid, 0)
        child.ended(os.waitstatus_to_exitcode(status))

    def next_deadline(self) -> float | None:
        """The earliest deadline of a child."""
        deadlines = [child.deadline for child in self.running.values() if child.deadline is not None]
        return min(deadlines, default=None)

    def kill_late(self) -> None:
        """Kill the children whose deadline has passed; their pidfds become readable."""
        now = time.monotonic()
        for pidfd, child in list(self.running.items()):
            if child.deadline is not None and child.deadline <= now:
                log("a child exceeded its deadline and is killed", "error", pid=child.pid)
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                self.running[pidfd] = child._replace(deadline=None)


def _child(work: Callable[[], None], keep: Sequence[int], deadline_s: int | None, speaks: bool) -> None:
    """Run the child; never returns into the helper's loop."""
    code = 1
    try:
        os.setsid()
        for number in (
            signal.SIGINT,
            signal.SIGPIPE,
            signal.SIGXFSZ,
        ):  # ignored by the helper, and exec would keep that
            signal.signal(number, signal.SIG_DFL)
        _close_but(keep)
        if deadline_s is not None:
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
