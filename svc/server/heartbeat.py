"""Whether the main thread of a listener works: it says so each second, by an eventfd of its own.

The app parent counts its own checks at which nothing was said, so that a machine that stood still
ends no listener. Each role has a descriptor that no other has. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import time

CHECK_S = 5.0
SILENT_MAX = 6  # checks in a row without a word


class Heartbeat:
    """One listener's."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.pid = 0
        self.silent = 0
        self.checked_at = 0.0

    def beat(self) -> None:
        """In the listener: its main thread works."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self.descriptor, 1)

    def is_silent(self, pid: int) -> bool:
        """In the parent: whether that process has said nothing at SILENT_MAX checks in a row."""
        now = time.monotonic()
        if pid != self.pid:
            self.pid, self.silent, self.checked_at = pid, 0, now
        if now < self.checked_at + CHECK_S:
            return False
        self.checked_at = now
        try:
            os.eventfd_read(self.descriptor)
        except BlockingIOError:
            self.silent += 1
        else:
            self.silent = 0
        return self.silent >= SILENT_MAX
