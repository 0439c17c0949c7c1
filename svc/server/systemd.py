"""What systemd is told of the service: that it is ready, and that it still answers.

The watchdog asks for the health on the host socket, as any caller would. Any answer counts: a full disk
or a damaged database makes health answer 503, and no restart would mend that. Of the answer
root reads the first bytes only.
"""

from __future__ import annotations

import contextlib
import os
import socket
import time

QUESTION = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
ANSWER = b"HTTP/1.1 "
PER_INTERVAL = 6  # questions; a few may go unanswered while the host is busy


def notify(state: bytes) -> None:
    """Send a state to systemd, sd_notify(3); nothing where systemd has not started this process."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock, contextlib.suppress(OSError):
        sock.setblocking(False)
        sock.sendto(state, "\0" + address[1:] if address[0] == "@" else address)


class Watchdog:
    """The questions after health, as often as systemd's WatchdogSec= wants; none without it."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.every_s = _interval_s() / PER_INTERVAL
        self.question: socket.socket | None = None
        self.asked = 0.0

    def step(self) -> None:
        """Tell systemd of an answer that has come; ask again when it is time. Never waits."""
        if not self.every_s:
            return
        if self.question is not None and _is_answered(self.question):
            notify(b"WATCHDOG=1\n")
            self._drop()
        now = time.monotonic()
        if now - self.asked >= self.every_s:
            self._drop()
            self.asked = now
            self._ask()

    def _ask(self) -> None:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.setblocking(False)
        try:
            sock.connect(self.path)
            sock.send(QUESTION)
        except OSError:  # nobody accepts any more
            sock.close()
        else:
            self.question = sock

    def _drop(self) -> None:
        if self.question is not None:
            self.question.close()
            self.question = None


def _interval_s() -> float:
    """WatchdogSec= of the unit, in seconds; 0 without one, or where it means another process."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdecimal() or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return 0.0
    return int(microseconds) / 1e6


def _is_answered(sock: socket.socket) -> bool:
    try:
        return sock.recv(len(ANSWER)) == ANSWER
    except OSError:
        return False
