"""A command's two output streams: kept up to a limit, then read and dropped.

So no command blocks on a full pipe.
"""

from __future__ import annotations

import os
import select

_PART = 64 * 1024


class Output:
    """The pipes of one command and what was read from them."""

    def __init__(self, limit: int) -> None:
        """`limit` is in bytes, both streams together."""
        self.stdout, self.stderr = bytearray(), bytearray()
        self.truncated = False
        self._room = limit
        self.stdin: int | None = None  # the command's: empty
        self.reading: dict[int, bytearray] = {}
        self.writing: list[int] = []  # the command's ends: stdout, stderr
        for kept in (self.stdout, self.stderr):
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            self.reading[read] = kept
            self.writing.append(write)

    def events(self) -> dict[int, int]:
        """What to wait for."""
        return dict.fromkeys(self.reading, select.POLLIN)

    def act(self, ready: set[int]) -> None:
        """Read what is available."""
        for fd in ready:
            self.take(fd)

    def begin_pipe(self) -> None:
        """Nothing: crun's own errors are replaced at the end."""

    def first_errors(self, most: int) -> str:
        """The beginning of the standard error."""
        return self.stderr[:most].decode(errors="replace")

    def replace_errors(self, text: str) -> None:
        """Have this in place of the standard error."""
        self.stderr[:] = text.encode()

    def release(self) -> None:
        """Nothing is held back."""

    def take(self, fd: int) -> bool:
        """Read what is available; whether there may be more."""
        try:
            part = os.read(fd, _PART)
        except BlockingIOError:
            return False
        if not part:
            del self.reading[fd]
            os.close(fd)
            return False
        self.reading[fd] += part[: self._room]
        self.truncated |= len(part) > self._room
        self._room -= min(self._room, len(part))
        return True

    def finish(self) -> None:
        """Read what an ended command left, without waiting for processes that still hold the pipes."""
        for fd in list(self.reading):
            while not self.truncated and self.take(fd):
                pass

    def close_writing(self) -> None:
        """Close the command's ends, once it has them itself."""
        while self.writing:
            os.close(self.writing.pop())

    def close(self) -> None:
        """Close all that is still open."""
        self.close_writing()
        while self.reading:
            os.close(self.reading.popitem()[0])
