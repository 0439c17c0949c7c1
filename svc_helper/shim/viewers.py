"""The viewers of a terminal.

What a viewer still has to get is a position in the scrollback, so that nothing queues. One that
does not keep up skips to the beginning of what is kept; it never delays the shell or another viewer.
"""

from __future__ import annotations

import socket
from contextlib import suppress

from svc_helper.shim.loop import IN, OUT, Loop, Timer
from svc_helper.shim.scrollback import Scrollback
from svc_helper.wire.quick_typing import Protocol
from svc_helper.wire.terminal_frames import DATA_MAX, FRAME_MAX, OUTPUT, SKIPPED, facts

_LAST_S = 30  # for a viewer to read the end of a terminal that has ended
_AHEAD_MAX = 64 * 1024  # bytes that the quickest viewer has yet to read, beyond which the shell waits

KIND = socket.SOCK_SEQPACKET  # of a viewer's socket
Size = tuple[int, int]  # columns, rows


class Terminal(Protocol):
    """What a viewer asks of its terminal and tells it."""

    def state_frame(self) -> bytes:
        """The frame of the terminal's present state."""

    def handle(self, viewer: Viewer, frame: bytes) -> None:
        """Handle a frame of the viewer's."""

    def viewer_moved(self) -> None:
        """Take note that a viewer has read something."""

    def viewer_gone(self, viewer: Viewer) -> None:
        """Take note that it is detached."""


class Viewer:
    """An attached viewer."""

    def __init__(
        self,
        loop: Loop,
        sock: socket.socket,
        scrollback: Scrollback,
        size: Size,
        terminal: Terminal,
    ) -> None:
        self.size = size
        self._loop, self._sock, self._scrollback, self._terminal = loop, sock, scrollback, terminal
        self.position, self._setting = scrollback.beginning()
        self._skipped = 0
        self._state_due = True
        self._end = b""
        self._reading = True
        self._blocked = False
        self._last: Timer | None = None
        self.closed = False

    def state_changed(self) -> None:
        """The terminal's state is to be sent again."""
        self._state_due = True

    def set_reading(self, reading: bool) -> None:
        """Whether to read what the viewer types: not while the terminal takes no more."""
        if self._reading != reading:
            self._reading = reading
            self._watch()

    def pump(self) -> bool:
        """Send what there is room for; whether anything was sent."""
        sent = False
        while not self.closed:
            frame, count = self._next()
            if not frame:
                break
            try:
                self._sock.send(frame, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
            except BlockingIOError:
                self._blocked = True
                self._watch()
                return sent
            except OSError:
                self.close()
                return sent
            self._sent(frame, count)
            sent = True
        self._blocked = False
        self._watch()
        return sent

    def end(self, frame: bytes) -> None:
        """Send the rest of the output and this last frame, then close."""
        self._end = frame
        if self._last is None and not self.closed:
            self._last = self._loop.later(_LAST_S, self.close)
        self.pump()

    def close(self) -> None:
        """Detach it."""
        if not self.closed:
            self.closed = True
            if self._last is not None:
                self._last.drop()
            self._loop.unwatch(self._sock.fileno())
            self._drain()
            self._sock.close()
            self._terminal.viewer_gone(self)

    def _drain(self) -> None:
        """Take what was typed too late: closed with that, the socket would lose the frames of ours in it."""
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RD)
            while self._sock.recv(FRAME_MAX, socket.MSG_DONTWAIT):
                pass

    def _next(self) -> tuple[bytes, int]:
        """The next frame and the number of the scrollback's bytes in it; an empty one when all is sent."""
        if self._state_due:
            return self._terminal.state_frame(), 0
        if self.position < self._scrollback.start:
            beginning, self._setting = self._scrollback.beginning()
            self._skipped += beginning - self.position
            self.position = beginning
        if self._skipped:
            return facts(SKIPPED, {"bytes": self._skipped}), 0
        if self._setting:
            return OUTPUT + self._setting, 0
        part = self._scrollback.read(self.position, DATA_MAX)
        return (OUTPUT + part, len(part)) if part else (self._end, 0)

    def _sent(self, frame: bytes, count: int) -> None:
        if self._state_due:
            self._state_due = False
        elif self._skipped:
            self._skipped = 0
        elif self._setting:
            self._setting = b""
        elif count:
            self.position += count
        else:
            self.close()

    def _watch(self) -> None:
        if self.closed:
            return
        mask = (IN if self._reading else 0) | (OUT if self._blocked else 0)
        self._loop.watch(self._sock.fileno(), mask, self._act)

    def _act(self, events: int) -> None:
        if events & OUT and self.pump():
            self._terminal.viewer_moved()
        if events & ~OUT and not self.closed:
            if self._reading:
                self._receive()
            else:  # it has gone, with what it typed last: kept, that of many would fill the memory
                self.close()

    def _receive(self) -> None:
        try:
            frame = self._sock.recv(FRAME_MAX + 1, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            frame = b""
        if not frame or len(frame) > FRAME_MAX:
            self.close()
            return
        self._terminal.handle(self, frame)


class Audience:
    """The attached viewers, the first one first."""

    def __init__(self, loop: Loop, scrollback: Scrollback, terminal: Terminal) -> None:
        self._loop, self._scrollback, self._terminal = loop, scrollback, terminal
        self._viewers: list[Viewer] = []
        self._typist: Viewer | None = None

    def __len__(self) -> int:
        return len(self._viewers)

    def add(self, sock: socket.socket, size: Size) -> Viewer:
        """Attach a viewer with a window of this size."""
        viewer = Viewer(self._loop, sock, self._scrollback, size, self._terminal)
        self._viewers.append(viewer)
        return viewer

    def remove(self, viewer: Viewer) -> None:
        """Forget a viewer that is detached."""
        self._viewers.remove(viewer)
        if self._typist is viewer:
            self._typist = None

    def typed(self, viewer: Viewer) -> None:
        """Take note who typed last."""
        self._typist = viewer

    def decides_size(self, viewer: Viewer) -> bool:
        """Whether the terminal has this viewer's size: it typed last, or nobody did and its size is new."""
        return self._typist in (viewer, None)

    def only(self) -> Viewer | None:
        """The viewer, if there is just one: it determines the size."""
        return self._viewers[0] if len(self._viewers) == 1 else None

    def pump(self) -> bool:
        """Send everybody what there is room for; whether anything was sent."""
        sent = [viewer.pump() for viewer in list(self._viewers)]
        return any(sent)

    def lags(self) -> bool:
        """Whether there are viewers, and even the quickest is far behind."""
        behind = [self._scrollback.end - viewer.position for viewer in self._viewers]
        return bool(behind) and min(behind) > _AHEAD_MAX

    def set_reading(self, reading: bool) -> None:
        """Whether to read what viewers type."""
        for viewer in self._viewers:
            viewer.set_reading(reading)

    def state_changed(self) -> None:
        """The terminal's state is to be sent again."""
        for viewer in self._viewers:
            viewer.state_changed()

    def end(self, frame: bytes) -> None:
        """Send everybody the rest of the output and this last frame."""
        for viewer in list(self._viewers):
            viewer.end(frame)

    def close(self) -> None:
        """Detach everybody."""
        for viewer in list(self._viewers):
            viewer.close()
