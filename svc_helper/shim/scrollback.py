"""The newest output of a terminal, bounded, for viewers that come later or do not keep up.

Positions count the bytes since the terminal's first one. Reading may begin at a mark
only: there no escape sequence and no character is incomplete, and the modes in
force are known.
"""

from __future__ import annotations

import mmap
from collections import deque

from svc_helper.shim import escapes
from svc_helper.wire.quick_typing import NamedTuple

SCROLLBACK_MAX = 256 * 1024  # bytes kept of each terminal
_MARK_EVERY = 2048


class Mark(NamedTuple):
    """A position from which a reader may begin, and what sets its terminal's modes."""

    position: int
    setting: bytes


class Scrollback:
    """The last SCROLLBACK_MAX bytes."""

    def __init__(self) -> None:
        self.start = self.end = 0
        self._pages: mmap.mmap | None = None  # in pages of its own, which are given back with it
        self._reader = escapes.Reader()
        self._marks: deque[Mark] = deque([Mark(0, b"")])

    @property
    def title(self) -> str:
        """The window's title that the output has set last."""
        return self._reader.title

    def add(self, part: bytes) -> None:
        """Add output; the oldest goes."""
        self._reader.feed(part)
        self._keep(part)
        self.start = max(0, self.end - SCROLLBACK_MAX)
        while self._marks and self._marks[0].position < self.start:
            self._marks.popleft()
        newest = self._marks[-1].position if self._marks else self.start - _MARK_EVERY
        incomplete = self._reader.incomplete()
        if incomplete is not None and self.end - incomplete - newest >= _MARK_EVERY:
            self._marks.append(Mark(self.end - incomplete, escapes.setting(self._reader.modes())))

    def _keep(self, part: bytes) -> None:
        if self._pages is None:
            self._pages = mmap.mmap(-1, SCROLLBACK_MAX, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for at in range(0, len(part), SCROLLBACK_MAX):
            piece = part[at : at + SCROLLBACK_MAX]
            offset = self.end % SCROLLBACK_MAX
            first = min(len(piece), SCROLLBACK_MAX - offset)
            self._pages[offset : offset + first] = piece[:first]
            self._pages[: len(piece) - first] = piece[first:]
            self.end += len(piece)

    def beginning(self) -> Mark:
        """Where a new reader begins: at the oldest mark; without one, the end is all that is known."""
        return self._marks[0] if self._marks else Mark(self.end, b"")

    def read(self, position: int, most: int) -> bytes:
        """Up to `most` bytes from a position between start and end."""
        count = min(most, self.end - position)
        if self._pages is None or count <= 0:
            return b""
        offset = position % SCROLLBACK_MAX
        part = self._pages[offset : offset + count]
        return part + self._pages[: count - len(part)]
