"""One end of what passes between a browser and a program: a socket on the loop, with a bounded buffer."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable

from svc.descriptors import guarded
from svc_helper.shim.loop import ERR, HUP, IN, OUT, Loop

READ_BYTES = 64 * 1024  # of one turn
BUFFER_MAX = 128 * 1024  # bytes that wait for a reader, before nothing more is read for it


class End:
    """A connected socket. `took` gets what comes, `b""` at its end; `moved` is called after more was sent.

    `took` may close it. After an error `lost` is called, once, and nothing after it. What one that has gone
    sent before is read to its end if `receives_rest`: an answer counts although its program has closed.
    Otherwise it is lost as soon as nobody is there. Descriptors that a program sends with its bytes are not
    received: they end it.
    """

    def __init__(
        self, loop: Loop, sock: socket.socket, took: Callable[[bytes], None], *, receives_rest: bool = False
    ) -> None:
        sock = guarded(sock)
        sock.setblocking(False)
        self.loop, self.sock, self.took, self.receives_rest = loop, sock, took, receives_rest
        self.moved: Callable[[], None] = lambda: None
        self.lost: Callable[[], None] = lambda: None
        self.output = bytearray()
        self.sent = self.received = 0  # bytes
        self.is_reading = True
        self.is_open = True
        self.has_ended = False  # the other side sends nothing more
        self._is_finishing = self._is_finished = self._is_deaf = False
        self._watch()

    @property
    def has_room(self) -> bool:
        """Whether more may be written for it."""
        return len(self.output) < BUFFER_MAX

    def write(self, data: bytes) -> None:
        """Send, now or when the reader takes it."""
        if data and self.is_open and not self._is_deaf:
            self.output += data
            self._flush()

    def finish(self) -> None:
        """Say, after what waits, that nothing more comes."""
        self._is_finishing = True
        if self.is_open:
            self._flush()

    def read(self, reading: bool) -> None:
        """Whether what comes is taken now; else it waits in the kernel."""
        if self.is_reading != reading:
            self.is_reading = reading
            self._watch()

    def close(self) -> None:
        """Close it; what waits is lost."""
        if self.is_open:
            self.is_open = False
            self.loop.unwatch(self.sock.fileno())
            self.sock.close()

    def _watch(self) -> None:
        if self.is_open:
            mask = (IN if self.is_reading and not self.has_ended else 0) | (OUT if self.output else 0)
            self.loop.watch(self.sock.fileno(), mask, self._ready)

    def _ready(self, events: int) -> None:
        is_over = self.has_ended or not self.is_reading  # HUP: both directions have ended
        if not self.receives_rest and (events & ERR or (events & HUP and is_over)):
            self._lose()  # nobody is left to read
            return
        if events & (ERR | HUP) and is_over:
            self.loop.unwatch(self.sock.fileno())  # the event would come without end
            return
        if events & OUT:
            self._flush()
            if self.is_open:
                self.moved()
        if events & (IN | HUP | ERR) and self.is_open and self.is_reading and not self.has_ended:
            self._receive()

    def _receive(self) -> None:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            self._lose()
            return
        if not data:
            self.has_ended = True
            self._watch()
        self.received += len(data)
        self.took(data)

    def _flush(self) -> None:
        try:
            while self.output:
                with memoryview(self.output) as view:
                    count = self.sock.send(view[:READ_BYTES])
                del self.output[:count]
                self.sent += count
        except BlockingIOError:
            pass
        except OSError:
            if not self.receives_rest:
                self._lose()
                return
            self._is_deaf = True
            self.output.clear()
        if self._is_finishing and not self._is_finished and not self.output:
            self._is_finished = True
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)
        self._watch()

    def _lose(self) -> None:
        if self.is_open:
            self.close()
            self.lost()
