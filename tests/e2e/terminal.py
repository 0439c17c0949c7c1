"""The program on a terminal: what it asks, what is typed, what it prints, how it leaves the terminal."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import select
import signal
import struct
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from e2e.installation import SVC

INTERRUPT, END = b"\x03", b"\x04"  # Ctrl-C, Ctrl-D


def typed(
    user: str, argv: Sequence[str], env: dict[str, str], question: str, reply: bytes, timeout_s: float = 60
) -> tuple[int, str]:
    """Run `svc ARGV` as that user and type the reply to the question; the exit code and the screen."""
    pid, terminal = started(user, argv, env)
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


def started(user: str, argv: Sequence[str], env: dict[str, str], term: str = "dumb") -> tuple[int, int]:
    """Start `svc ARGV` as that user on a terminal of its own; its pid, and the terminal's other end."""
    account = pwd.getpwnam(user)
    pid, terminal = os.forkpty()
    if pid == 0:
        try:
            os.initgroups(user, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.chdir(account.pw_dir)
            os.execve(SVC, [str(SVC), *argv], env | {"HOME": account.pw_dir, "TERM": term})
        finally:
            os._exit(127)
    return pid, terminal


class Window:
    """A window in which the program runs: what is on it, and keys."""

    def __init__(self, user: str, argv: Sequence[str], env: dict[str, str]) -> None:
        self.pid, self.terminal = started(user, argv, env, "xterm")
        self.screen = b""
        self.seen = 0  # how much of the screen expect() has been through
        self.code: int | None = None

    def type(self, keys: str | bytes) -> None:
        """Press these keys."""
        data = keys.encode() if isinstance(keys, str) else keys
        while data:
            data = data[os.write(self.terminal, data) :]

    def expect(self, text: str | bytes, seconds: float = 30) -> bytes:
        """Wait until the screen shows this, after what was expected before; what stood before it."""
        wanted = text.encode() if isinstance(text, str) else text
        deadline = time.monotonic() + seconds
        while (at := self.screen.find(wanted, self.seen)) < 0:
            assert self._read(), f"it ended without {wanted!r}: {self.screen[self.seen :]!r}"
            assert time.monotonic() < deadline, f"no {wanted!r} in {self.screen[self.seen :]!r}"
        before, self.seen = self.screen[self.seen : at], at + len(wanted)
        return before

    def resize(self, cols: int, rows: int) -> None:
        """Change the size of the window."""
        fcntl.ioctl(self.terminal, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def is_raw(self) -> bool:
        """Whether keys go to the program as they are, without an echo."""
        return not termios.tcgetattr(self.terminal)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)

    def end(self, seconds: float = 30) -> int:
        """Wait for the end of the program; its exit code, negative for a signal."""
        deadline = time.monotonic() + seconds
        while self.code is None:
            assert time.monotonic() < deadline, f"it goes on: {self.screen[self.seen :]!r}"
            self._read()
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                self.code = os.waitstatus_to_exitcode(status)
        self._read()
        return self.code

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def close(self) -> None:
        """Close the window."""
        os.close(self.terminal)
        if self.code is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def _read(self) -> bool:
        """Read what there is, for a moment; False at the end."""
        if not select.select([self.terminal], [], [], 0.1)[0]:
            return True
        try:
            part = os.read(self.terminal, 65536)
        except OSError:
            return False
        self.screen += part
        return bool(part)


@contextmanager
def window(user: str, *argv: str, env: dict[str, str], cols: int = 80, rows: int = 24) -> Iterator[Window]:
    """The program in a window of that size, which is closed at the end."""
    opened = Window(user, argv, env)
    try:
        opened.resize(cols, rows)
        yield opened
    finally:
        opened.close()
