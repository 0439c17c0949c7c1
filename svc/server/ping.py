"""Whether the root helper answers: the supervisor's calls of `helper.ping`, on a pair of their own.

The app is hostile to the helper, whose one thread may be held up by what it is sent (a descriptor
whose close waits). Nothing of a reply is read but that it came.
"""

from __future__ import annotations

import contextlib
import socket
import time

from svc.server import children

PAIR = "supervisor"
CALL = b'{"verb":"helper.ping","user":null,"rid":"supervisor","timeout_s":5,"args":{}}'
EVERY_S = 2.0
SILENT_S = 7.0  # with the next one: another helper starts within ten seconds
END_WITHIN_S = 1.0  # after SIGKILL


class Ping:
    """The pair, the reply path of the last ping, and when the helper last answered."""

    def __init__(self) -> None:
        self.sock, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.sock.setblocking(False)
        self.helper_end = children.move_high(theirs.detach())
        self.reply: socket.socket | None = None
        self.sent = self.answered = self.patience = 0.0
        self.killed = 0  # the pid of the last helper that was killed for its silence

    def is_late(self, started: float) -> bool:
        """Whether the helper, which was started then, has been silent for too long; sends the next ping."""
        now = time.monotonic()
        if self.reply is not None and _came(self.reply):
            self.answered = now
        if now - self.sent >= EVERY_S:
            self._send(now)
        return now > max(self.answered + SILENT_S, started + SILENT_S, self.patience)

    def expect_end(self, pid: int) -> None:
        """The silent helper was killed: it is late again soon, unless another has started."""
        self.killed, self.patience = pid, time.monotonic() + END_WITHIN_S

    def _send(self, now: float) -> None:
        """Send one more; the reply to the one before is no longer waited for, if it has not come."""
        if self.reply is not None:
            self.reply.close()
        self.reply, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sent = now
        with theirs, contextlib.suppress(BlockingIOError):  # the queue is full: nobody receives
            socket.send_fds(self.sock, [CALL], [theirs.fileno()])


def _came(reply: socket.socket) -> bool:
    """Whether there is a reply; an end of the path without one is none."""
    try:
        return bool(reply.recv(4096, socket.MSG_DONTWAIT))
    except OSError:
        return False
