"""Ends every process whose environment carries a mark; a program of its own.

Run as root of a user's rootless namespaces, where processes of the user's
subordinate ids can be read and signalled. Ends with 0 when a look over all
processes found none, with 1 when its time was over before that.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIGKILL, pidfd_send_signal  # the C half alone: this is started per look

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.01


def carries(pid: int, mark: bytes) -> bool:
    """Whether the process has the mark in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # another user's, or gone


def kill(pid: int, belongs: Callable[[int], bool]) -> None:
    """Kill that very process if it belongs: the pid is held before it is looked at again."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if belongs(pid):
            pidfd_send_signal(pidfd, SIGKILL)
    except OSError:
        pass
    finally:
        os.close(pidfd)


def sweep(mark: bytes, seconds: float) -> bool:
    """Kill what carries the mark until nothing does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = [int(name) for name in os.listdir("/proc") if name.isdecimal() and carries(int(name), mark)]
        if not found:
            return True
        for pid in found:
            kill(pid, lambda pid: carries(pid, mark))
        time.sleep(_PAUSE_S)
    return False


def main() -> None:
    """The command line: the mark (NAME=value) and how many seconds there are."""
    sys.exit(0 if sweep(os.fsencode(sys.argv[1]), float(sys.argv[2])) else 1)
