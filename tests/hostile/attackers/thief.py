"""Takes descriptors of the app's processes whenever one can be looked into; prints each that it got.

usage: thief.py TRIES   (at least so many, until SIGTERM comes)
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys

SYS_PIDFD_GETFD = 438


def app_processes() -> list[int]:
    """The processes whose command line or name is the app's, in the order of their numbers, newest first."""
    found = []
    for name in sorted(filter(str.isdigit, os.listdir("/proc")), key=int, reverse=True)[:40]:
        with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as file:
            if b"svc.app" in file.read():
                found.append(int(name))
    return found


def main() -> None:
    """Try until it is over."""
    libc = ctypes.CDLL(None, use_errno=True)
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    tries = 0
    print("begun", flush=True)
    while not over or tries < int(sys.argv[1]):
        for pid in app_processes():
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(pid)
                for number in range(3, 12):
                    tries += 1
                    if libc.syscall(SYS_PIDFD_GETFD, pidfd, number, 0) >= 0:
                        print("taken", pid, number, flush=True)
                os.close(pidfd)
    print("tries", tries, flush=True)


if __name__ == "__main__":
    main()
