"""Heartbeat of a listener's main thread: a write each second to an eventfd that the app parent checks.

The app parent counts its own checks without a beat, not seconds, so that a suspended machine
ends no listener. No role has the descriptor of another. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import time

CHECK_S = 5.0
SILENT_MAX = 6  # checks in a row without a beat


class Heartbeat:
    """The heartbeat of one listener."""

    def __init__(self) -> None:
        self.descriptor = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.pid = 0
        self.silent = 0
        self.checked_at = 0.0
        self.has_beaten = False

    def beat(self) -> None:
        """In the listener: record that its main thread works."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self.descriptor, 1)

    def is_silent(self, pid: int) -> bool:
        """In the parent: whether SILENT_MAX checks in a row found no beat of this process."""
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
            self.silent, self.has_beaten = 0, True
        return self.silent >= SILENT_MAX

    def has_ever_beaten(self) -> bool:
        """In the parent: whether any process of this listener has worked so far."""
        if not self.has_beaten:
            with contextlib.suppress(BlockingIOError):
                os.eventfd_read(self.descriptor)
                self.has_beaten = True
        return self.has_beaten
