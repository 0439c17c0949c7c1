"""The host's programs that change accounts, run as root."""

from __future__ import annotations

import os
import time

from svc_helper.root.verbs import Refusal

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LOCKED = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")  # useradd(8) locks them with NAME.lock
LOCK_WAIT_S = 10


def require(command: list[str], remedy: str) -> None:
    """Run a program that must succeed; raises Refusal with the remedy for the administrator.

    Its output goes to the helper's log. While a lock file exists it is run again for LOCK_WAIT_S:
    the lock's process may be exiting, or have exited without being reaped.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    while (code := _run(command)) != 0 and _locks() and time.monotonic() < deadline:
        time.sleep(0.2)
    if code != 0:
        raise Refusal("failed", f"{command[0]} failed with exit status {code}; {_locks() or remedy}")


def _run(command: list[str]) -> int:
    pid = os.posix_spawnp(command[0], command, {"PATH": PATH, "LANG": "C.UTF-8"})
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _locks() -> str:
    """The remedy for lock files, empty without one.

    The programs remove a lock whose process has exited, but not one whose pid another
    process has now, as after a crash of the host.
    """
    found = [path for name in LOCKED if os.path.exists(path := f"/etc/{name}.lock")]
    return f"if no other program is changing accounts, remove {' '.join(found)}" if found else ""
