"""Ends every process whose environment carries a mark; a program of its own.

Run as root of a user's rootless namespaces, where processes of the user's
subordinate ids can be read and signalled. With a grace they are first asked to
end (TERM, once) and have that long. Ends with 0 when a look over all processes
found none, with 1 when its time was over before that.
"""

from __future__ import annotations

import os
import sys
import time
from _signal import SIGKILL, SIGTERM, pidfd_send_signal  # the C half alone: this is started per look

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable

_PAUSE_S = 0.01
_LOOK_S = 0.1  # a look over all processes takes some of a processor


def carries(pid: int, mark: bytes) -> bool:
    """Whether the process has the mark in its environment."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return mark in file.read().split(b"\0")
    except OSError:
        return False  # another user's, or gone


def kill(pid: int, belongs: Callable[[int], bool], number: int = SIGKILL) -> None:
    """Signal that very process if it belongs: the pid is held before it is looked at again."""
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
    """Every process that carries the mark."""
    return [int(name) for name in os.listdir("/proc") if name.isdecimal() and carries(int(name), mark)]


def ask(mark: bytes, grace_s: float) -> bool:
    """Ask all of them to end; whether none is left within the grace."""
    for pid in find(mark):
        kill(pid, lambda pid: carries(pid, mark), SIGTERM)
    end = time.monotonic() + grace_s
    while find(mark):
        if time.monotonic() >= end:
            return False
        time.sleep(_LOOK_S)
    return True


def sweep(mark: bytes, seconds: float) -> bool:
    """Kill what carries the mark until nothing does."""
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
    """The command line: the mark (NAME=value), how many seconds there are for the killing, and the grace."""
    mark = os.fsencode(sys.argv[1])
    if len(sys.argv) > 3 and ask(mark, float(sys.argv[3])):
        sys.exit(0)
    sys.exit(0 if sweep(mark, float(sys.argv[2])) else 1)
