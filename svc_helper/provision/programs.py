"""The host's programs that change accounts, run as root."""

from __future__ import annotations

import os
import time

from svc_helper.provision.verbs import Refusal

PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
LOCKED = ("passwd", "shadow", "group", "gshadow", "subuid", "subgid")  # useradd(8) locks them with NAME.lock
LOCK_WAIT_S = 10
OUTPUT_MAX = 500  # characters of a program's output in a message


def require(command: list[str], remedy: str = "") -> None:
    """Run a program that must succeed; raises Refusal with its output and the administrator's remedy.

    While a lock file exists it is run again for LOCK_WAIT_S:
    the lock's process may be exiting, or have exited without being reaped.
    """
    deadline = time.monotonic() + LOCK_WAIT_S
    code, printed = _run(command)
    while code != 0 and _locks() and time.monotonic() < deadline:
        time.sleep(0.2)
        code, printed = _run(command)
    if code != 0:
        why = f"{command[0]} failed with exit status {code}" + (f" ({printed})" if printed else "")
        raise Refusal("failed", "; ".join(filter(None, (why, _locks() or remedy))))


def _run(command: list[str]) -> tuple[int, str]:
    """The exit code, and what the program has printed, in one line."""
    output = os.memfd_create("output", os.MFD_CLOEXEC)
    try:
        to_output = [(os.POSIX_SPAWN_DUP2, output, stream) for stream in (1, 2)]
        environment = {"PATH": PATH, "LANG": "C.UTF-8"}
        pid = os.posix_spawnp(command[0], command, environment, file_actions=to_output)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        return code, in_one_line(os.pread(output, OUTPUT_MAX * 4, 0))
    finally:
        os.close(output)


def in_one_line(output: bytes) -> str:
    """A program's output for a message: its lines joined, shortened."""
    lines = output.decode("utf-8", "backslashreplace").splitlines()
    return ", ".join(filter(None, (line.strip().removesuffix(".") for line in lines)))[:OUTPUT_MAX]


def _locks() -> str:
    """The remedy for lock files, empty without one.

    The programs remove a lock whose process has exited, but not one whose pid another
    process has now, as after a crash of the host.
    """
    found = [path for name in LOCKED if os.path.exists(path := f"/etc/{name}.lock")]
    return f"if no other program is changing accounts, remove {' '.join(found)}" if found else ""
