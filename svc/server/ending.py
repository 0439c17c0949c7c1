"""Ending the processes of a role by their uid, for the app parent.

A process of a role may have been taken over, and may have forked and hidden; its uid it cannot change.
Standard library only.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable

PARENT_NAME = "svc-app"  # as `ps` prints the app parent
KILLED_WITHIN_S = 5.0


def signal_as(uid: int, pid: int, number: int) -> None:
    """Send a signal to a role's process: by a fork of that uid, since the parent may not.

    Not waited for: the caller reaps it with its other children.
    """
    if uid == os.getuid():
        os.kill(pid, number)
        return
    _fork_as(uid, lambda: os.kill(pid, number))


def kill_all_of(uid: int) -> bool:
    """Kill every process of a uid in this process namespace, at once; False if that did not succeed.

    One kill(2) of the kernel, which no fork escapes. A process of that uid may kill the fork that
    does it before it gets so far: it is tried again.
    """
    deadline = time.monotonic() + KILLED_WITHIN_S
    while time.monotonic() < deadline:
        _, status = os.waitpid(_fork_as(uid, _kill_others), 0)
        if status == 0:
            return True
    return False


def _kill_others() -> None:
    try:
        os.kill(-1, signal.SIGKILL)
    except ProcessLookupError:
        pass  # there is none


def _fork_as(uid: int, act: Callable[[], None]) -> int:
    """Fork a process that becomes this uid, acts and exits; its pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.setresuid(uid, uid, uid)
            if uid != 0 and os.getresuid() == (uid, uid, uid):
                act()
                code = 0
        except ProcessLookupError:
            code = 0
        finally:
            os._exit(code)
    return pid
