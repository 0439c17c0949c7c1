"""The program on a terminal: what it asks, what is typed, what it prints."""

from __future__ import annotations

import os
import pwd
import select
import time
from collections.abc import Sequence

from e2e.installation import SVC

INTERRUPT, END = b"\x03", b"\x04"  # Ctrl-C, Ctrl-D


def typed(
    user: str, argv: Sequence[str], env: dict[str, str], question: str, reply: bytes, timeout_s: float = 60
) -> tuple[int, str]:
    """Run `svc ARGV` as that user and type the reply to the question; the exit code and the screen."""
    account = pwd.getpwnam(user)
    pid, terminal = os.forkpty()
    if pid == 0:
        try:
            os.initgroups(user, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.chdir(account.pw_dir)
            os.execve(SVC, [str(SVC), *argv], env | {"HOME": account.pw_dir, "TERM": "dumb"})
        finally:
            os._exit(127)
    screen = b""
    asked = False
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if not select.select([terminal], [], [], 0.2)[0]:
            continue
        try:
            part = os.read(terminal, 65536)
        except OSError:  # the program has ended
            break
        screen += part
        if not asked and question.encode() in screen:
            asked = True
            os.write(terminal, reply)
    os.close(terminal)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return code, screen.decode(errors="replace").replace("\r\n", "\n")
