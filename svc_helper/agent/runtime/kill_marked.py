"""Kills every process whose environment contains a mark; a program of its own.

Run as root of a user's rootless namespaces, where processes of the user's
subordinate ids can be read and signalled. With a grace period they first get
TERM, once. The exit status is 0 when a scan of all processes found none, 1 when
the time was over before that.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIGKILL, SIGTERM, pidfd_send_signal  # the C half alone: starts faster

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.01
_SCAN_S = 0.1  # a scan of all processes costs processor time


def carries(pid: int, mark: bytes) -> bool:
    """Whether the process's environment contains the mark."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # another user's, or ended


def kill(pid: int, belongs: Callable[[int], bool], number: int = SIGKILL) -> None:
    """Signal a process if it belongs; checked again with a pidfd open, since the pid may be reused."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return
    try:
        if belongs(pid):
            pidfd_send_signal(pidfd, number)
    except OSError:
        pass
    finally:
        os.close(pidfd)


def find(mark: bytes) -> list[int]:
    """Every marked process."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and carries(int(name), mark)]


def terminate(mark: bytes, grace_s: float) -> bool:
    """Send TERM to all marked processes; whether none is left within the grace period."""
    for pid in find(mark):
        kill(pid, lambda pid: carries(pid, mark), SIGTERM)
    end = time.monotonic() + grace_s
    while find(mark):
        if time.monotonic() >= end:
            return False
        time.sleep(_SCAN_S)
    return True


def kill_marked(mark: bytes, seconds: float) -> bool:
    """Kill marked processes until a scan finds none; False when the time is over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = find(mark)
        if not found:
            return True
        for pid in found:
            kill(pid, lambda pid: carries(pid, mark))
        time.sleep(_PAUSE_S)
    return False


def main() -> None:
    """Arguments: the mark (NAME=value), the seconds for the killing, and optionally the grace period."""
    mark = os.fsencode(sys.argv[1])
    if len(sys.argv) > 3 and terminate(mark, float(sys.argv[3])):
        sys.exit(0)
    sys.exit(0 if kill_marked(mark, float(sys.argv[2])) else 1)
