"""Child processes of the agent, watched through a pidfd."""

from __future__ import annotations

import os
from select import POLLIN, poll


class Process:
    """A started child; its pidfd stays open as long as this object is referenced."""

    __slots__ = ("pid", "pidfd")

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self.pidfd)

    def ended(self) -> int | None:
        """The exit status, or None while it runs. Reaps the child: the status is returned only once."""
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return 0
        return os.waitstatus_to_exitcode(status) if pid else None

    def wait(self, timeout_s: float) -> bool:
        """Whether it has ended within timeout_s."""
        poller = poll()
        poller.register(self.pidfd, POLLIN)
        return bool(poller.poll(timeout_s * 1000))
