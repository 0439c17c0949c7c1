"""A command's two output streams: kept up to a limit, drained beyond it.

The rest is read and dropped, so that no command blocks on a full pipe.
"""

from __future__ import annotations

import os

from svc_helper.wire.limits import EXEC_OUTPUT_MAX

_PART = 64 * 1024


class Output:
    """The pipes of one command and what came through them."""

    def __init__(self) -> None:
        self.stdout, self.stderr = bytearray(), bytearray()
        self.truncated = False
        self._room = EXEC_OUTPUT_MAX
        self.reading: dict[int, bytearray] = {}
        self.writing: list[int] = []  # the command's ends: stdout, stderr
        for kept in (self.stdout, self.stderr):
            read, write = os.pipe2(os.O_CLOEXEC)
            os.set_blocking(read, False)
            self.reading[read] = kept
            self.writing.append(write)

    def take(self, fd: int) -> bool:
        """Read what is there now; whether there may be more."""
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
        """Take what an ended command left; what still holds the pipes is not waited for."""
        for fd in list(self.reading):
            while not self.truncated and self.take(fd):
                pass

    def replace_stderr(self, text: str) -> None:
        """Say something of ours in place of what an engine said there."""
        self.stderr[:] = text.encode()

    def hand_over(self) -> None:
        """Close the command's ends: it has them itself now."""
        while self.writing:
            os.close(self.writing.pop())

    def close(self) -> None:
        """Close whatever is still open."""
        self.hand_over()
        while self.reading:
            os.close(self.reading.popitem()[0])
