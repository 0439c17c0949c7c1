"""The master side of a terminal: typing goes in, and output comes out at the pace of those who read it.

Endless output must not use a whole processor, and the shell waits for the quickest viewer, but for none
that does not read.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
import time
from contextlib import suppress

from svc_helper.shim.loop import IN, OUT, Loop, Timer
from svc_helper.shim.scrollback import Scrollback
from svc_helper.shim.viewers import Size
from svc_helper.wire.quick_typing import Protocol

_PART = 64 * 1024
_ROUNDS = 16  # parts of one event; the kernel has 4 KiB in each
_RATE_BYTES, _RATE_S = 1024 * 1024, 0.05  # 20 MB/s
_PATIENCE_S = 1.0  # that the shell waits for viewers of which none reads
_INPUT_MAX = 64 * 1024  # bytes typed that the shell has not taken
_DRAIN_MAX = 1024 * 1024  # bytes of the output that an ended command left
_HUNG_UP_S = 1.0  # until the next look at a terminal that no process has open


class Terminal(Protocol):
    """What the master tells its terminal, and asks of it."""

    def output_arrived(self) -> None:
        """Take note of output in the scrollback."""

    def lags(self) -> bool:
        """Whether there are viewers, and even the quickest is far behind."""

    def typing_taken(self) -> None:
        """Take note that `takes_typing` may have changed."""


class Master:
    """The descriptor of the master side, from when crun has sent it until it is closed."""

    def __init__(self, loop: Loop, scrollback: Scrollback, terminal: Terminal) -> None:
        self._loop, self._scrollback, self._terminal = loop, scrollback, terminal
        self._fd = -1
        self._typed = bytearray()
        self._taken, self._since = 0, 0.0  # bytes of output since a time (monotonic)
        self._paused: Timer | None = None
        self._for_viewers, self._read_at = False, 0.0  # viewers read last (monotonic)

    @property
    def is_open(self) -> bool:
        """Whether the terminal is there and not hung up."""
        return self._fd >= 0

    @property
    def takes_typing(self) -> bool:
        """Whether there is room for more of what is typed."""
        return len(self._typed) < _INPUT_MAX

    def open(self, fd: int, size: Size) -> None:
        """Take over the descriptor."""
        self._fd = fd
        self.set_size(size)
        self._listen()

    def close(self) -> None:
        """Hang up."""
        if self._fd >= 0:
            self._loop.unwatch(self._fd)
            os.close(self._fd)
            self._fd = -1
            self._typed.clear()

    def set_size(self, size: Size) -> None:
        """Tell the programs in the terminal its columns and rows."""
        if self._fd >= 0:
            with suppress(OSError):
                fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("4H", size[1], size[0], 0, 0))

    # --- input --------------------------------------------------------------------

    def type(self, data: bytes) -> None:
        """Pass on what was typed, as far as the terminal takes it; the rest follows."""
        if self._fd >= 0:
            self._typed += data
            self._write()

    def _write(self) -> None:
        try:
            while self._typed:
                del self._typed[: os.write(self._fd, self._typed)]
        except BlockingIOError:
            pass
        except OSError:  # hung up
            self._typed.clear()
        self._terminal.typing_taken()
        self._listen()

    # --- output -------------------------------------------------------------------

    def _listen(self) -> None:
        """Watch for what can be done now."""
        if self._fd < 0:
            return
        mask = (0 if self._paused else IN) | (OUT if self._typed else 0)
        if mask:
            self._loop.watch(self._fd, mask, self._act)
        else:
            self._loop.unwatch(self._fd)

    def _act(self, events: int) -> None:
        if events & OUT:
            self._write()
        if events & ~OUT and self._fd >= 0 and not self._paused:
            self._take()

    def _take(self) -> None:
        """Read some output and pass it on."""
        started = self._scrollback.end
        for _ in range(_ROUNDS):
            if not self._read():
                break
        count = self._scrollback.end - started
        if not count:
            return
        now = time.monotonic()
        if now - self._since > _RATE_S:
            self._taken, self._since = 0, now
        self._taken += count
        self._terminal.output_arrived()
        if self._taken > _RATE_BYTES:
            self._pause(_RATE_S)
        elif self._terminal.lags():
            self._wait_for_viewers()

    def _read(self) -> bool:
        try:
            part = os.read(self._fd, _PART)
        except BlockingIOError:
            return False
        except OSError:
            part = b""
        if not part:  # no process has it open; one may open it again
            self._pause(_HUNG_UP_S)
            return False
        self._scrollback.add(part)
        return True

    def drain(self) -> None:
        """Read what an ended command left; other processes may still have the terminal open."""
        until = self._scrollback.end + _DRAIN_MAX
        while self._fd >= 0 and self._scrollback.end < until:
            try:
                part = os.read(self._fd, _PART)
            except OSError:
                break
            if not part:
                break
            self._scrollback.add(part)

    # --- pace ---------------------------------------------------------------------

    def viewers_read(self) -> None:
        """Take note that a viewer has got something."""
        self._read_at = time.monotonic()

    def viewer_moved(self) -> None:
        """Take note that a viewer has read something by itself, or has gone."""
        self.viewers_read()
        if self._for_viewers and not self._terminal.lags():
            self._resume()

    def _pause(self, seconds: float) -> None:
        """Read no output for so long."""
        if self._paused:
            self._paused.drop()
        self._paused = self._loop.later(seconds, self._resume)
        self._listen()

    def _resume(self) -> None:
        if self._paused:
            self._paused.drop()
        self._paused, self._for_viewers = None, False
        self._listen()

    def _wait_for_viewers(self) -> None:
        """Read no output until a viewer has caught up, or none has read for _PATIENCE_S."""
        left = self._read_at + _PATIENCE_S - time.monotonic()
        if self._terminal.lags() and left > 0:
            self._for_viewers = True
            if self._paused:
                self._paused.drop()
            self._paused = self._loop.later(left, self._wait_for_viewers)
            self._listen()
        else:
            self._resume()
