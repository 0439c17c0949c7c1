"""Programs of the host that change accounts, run as root."""

from __future__ import annotations

import os
import time

from svc_helper.root.verbs import Refusal

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LOCKED = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")  # useradd(8) locks them with NAME.lock
LOCK_WAIT_S = 10


def require(command: list[str], otherwise: str) -> None:
    """Run a program that must succeed; raises Refusal with `otherwise`, what is left for somebody to do.

    What it says itself goes to the helper's log. Where a lock is in the way it is
    run again for a while: its process may be ending, or ended and not yet reaped.
    """
    until = time.monotonic() + LOCK_WAIT_S
    while (code := _run(command)) != 0 and _locks() and time.monotonic() < until:
        time.sleep(0.2)
    if code != 0:
        raise Refusal("failed", f"{command[0]} ended with {code}; {_locks() or otherwise}")


def _run(command: list[str]) -> int:
    pid = os.posix_spawnp(command[0], command, {"PATH": PATH, "LANG": "C.UTF-8"})
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _locks() -> str:
    """What to do about a lock file, if there is one.

    The programs themselves take away a lock whose process is gone; not one whose
    number now belongs to another process, as after a crash of the host.
    """
    found = [path for name in LOCKED if os.path.exists(path := f"/etc/{name}.lock")]
    return f"if nobody else is changing accounts, remove {' '.join(found)}" if found else ""
