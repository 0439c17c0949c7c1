"""Child processes of the agent, watched through a pidfd."""

from __future__ import annotations

import os
from select import POLLIN, poll

TYPE_CHECKING = False  # as typing's own, without its import: Podman is started by this
if TYPE_CHECKING:
    from collections.abc import Mapping

_KILL_S = 5


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

    def finish(self, timeout_s: float) -> int | None:
        """Wait for its end, with KILL after timeout_s; the exit status, as ended()."""
        if not self.wait(timeout_s):
            os.kill(self.pid, 9)
            self.wait(_KILL_S)
        return self.ended()


def start(
    argv: list[str],
    environment: Mapping[str, str],
    fds: Mapping[int, int | None] | None = None,
    *,
    setsid: bool = False,
) -> Process:
    """Start a program; `fds` are its descriptors by number, None for /dev/null.

    Our descriptors must be above the highest of these numbers, or one is overwritten before it is copied.
    """
    actions = [
        (os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0)
        if fd is None
        else (os.POSIX_SPAWN_DUP2, fd, number)
        for number, fd in (fds or {}).items()
    ]
    return Process(os.posix_spawn(argv[0], argv, environment, file_actions=actions, setsid=setsid))
