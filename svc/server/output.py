"""The app's output: read from its pipe, made harmless, written to the supervisor's standard error.

A taken-over app may write anything: control characters are escaped, a line and the rate of lines are
limited (journald would drop the helper's lines with the app's), and nobody ever waits: what cannot be
written is dropped and counted. Each line begins with a space, so that none can pass for one of root's,
which begin with a brace; a reader of JSON takes both.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import time

from svc.host.detach import escaped
from svc.log import log

READ_MAX = 64 * 1024  # at a time, so that the supervisor's other work is never far
LINE_MAX = 16 * 1024  # a traceback of a request is shorter
PENDING_MAX = 256 * 1024
WRITE_MAX = 4096  # a pipe that is writable takes so much at once
BURST, PER_S = 5000.0, 150.0  # lines; half of what journald takes from a service by default
LINE_USUAL = 1024  # bytes; a longer one counts as so many more
REPORT_S = 5.0


class Output:
    """The pipe and what is on its way."""

    def __init__(self, target: int) -> None:
        self.reading, self.writing = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.reading, False)
        self.target, self.is_socket = _unblocking(target)
        self.line = b""
        self.is_cut = False  # the rest of the present line is dropped
        self.pending = b""
        self.allowed, self.refilled_at = BURST, time.monotonic()
        self.lost, self.reported_at = 0, time.monotonic()

    def copy(self) -> None:
        """Read what the app has written, and write what the target takes now; never waits."""
        self._read()
        self._write()

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            *lines, rest = (self.line + os.read(self.reading, READ_MAX)).split(b"\n")
            for line in lines:
                if not self.is_cut:
                    self._add(line)
                self.is_cut = False
            if self.is_cut or len(rest) > LINE_MAX:
                if not self.is_cut:
                    self._add(rest)
                self.is_cut, rest = True, b""
            self.line = rest

    def _add(self, line: bytes) -> None:
        now = time.monotonic()
        self.allowed = min(BURST, self.allowed + (now - self.refilled_at) * PER_S)
        self.refilled_at = now
        text = b" " + escaped(line[:LINE_MAX].decode("utf-8", "backslashreplace")).encode() + b"\n"
        if self.allowed < 1 or len(self.pending) + len(text) > PENDING_MAX:
            self.lost += 1
            return
        self.allowed -= 1 + len(text) // LINE_USUAL
        self.pending += text

    def _write(self) -> None:
        if self.lost and time.monotonic() > self.reported_at + REPORT_S and not self.pending:
            lost, self.lost, self.reported_at = self.lost, 0, time.monotonic()
            log("supervisor", f"{lost} lines of the app were left out", "warning")
        with contextlib.suppress(OSError):
            while self.pending:
                part = self.pending[:WRITE_MAX]
                if self.is_socket:
                    with socket.socket(fileno=os.dup(self.target)) as sock:
                        written = sock.send(part, socket.MSG_DONTWAIT)
                else:
                    written = os.write(self.target, part)
                self.pending = self.pending[written:]


def _unblocking(target: int) -> tuple[int, bool]:
    """A descriptor of the same file on which a write does not wait, and whether it is a socket.

    O_NONBLOCK on `target` itself would be set for everybody who has it, root's shell included. A
    regular file never waits, and has one position for all.
    """
    mode = os.fstat(target).st_mode
    if stat.S_ISSOCK(mode):
        return target, True
    if stat.S_ISFIFO(mode) or stat.S_ISCHR(mode):
        with contextlib.suppress(OSError):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            return os.open(f"/proc/self/fd/{target}", flags), False
    return target, False


def of_supervisor() -> Output:
    """To standard error."""
    return Output(sys.stderr.fileno())
