"""Wait until a file is touched: the database's writers touch one after each commit with events.

By inotify, which Python has no module for. Where the host allows no further one, waiting ends
every FALLBACK_S instead.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select

from svc.db import events
from svc.log import log

IN_ATTRIB, IN_MODIFY, IN_IGNORED = 0x4, 0x2, 0x8000
PART = 64 * 1024
FALLBACK_S = 1.0


class WakeFile:
    """The file of one database, watched from the constructor on."""

    def __init__(self, database: str) -> None:
        self.database, self.path = database, f"{database}{events.SUFFIX}"
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.closing = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self.inotify = self.libc.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        self.is_watching = False
        self._watch()

    def _watch(self) -> None:
        with contextlib.suppress(OSError):
            events.ensure(self.path, self.database)
        if self.inotify >= 0:
            mask = IN_ATTRIB | IN_MODIFY
            self.is_watching = self.libc.inotify_add_watch(self.inotify, os.fsencode(self.path), mask) >= 0
        if not self.is_watching:
            why = os.strerror(ctypes.get_errno())
            log("streams", "the file of the events cannot be watched; they come later", "warning", why=why)

    def wait(self, timeout_s: float) -> bool:
        """Wait until the file was touched, or the time is over; False once it is closed."""
        poll = select.poll()
        poll.register(self.closing, select.POLLIN)
        if self.is_watching:
            poll.register(self.inotify, select.POLLIN)
        ready = dict(poll.poll((timeout_s if self.is_watching else FALLBACK_S) * 1000))
        if self.closing in ready:
            return False
        if self.inotify in ready and self._is_gone():
            self._watch()  # the file was removed, and will be there again
        return True

    def _is_gone(self) -> bool:
        gone = False
        with contextlib.suppress(BlockingIOError):
            records = os.read(self.inotify, PART)
            while records:  # struct inotify_event: wd, mask, cookie, len, name
                mask = int.from_bytes(records[4:8], "little")
                gone |= bool(mask & IN_IGNORED)
                records = records[16 + int.from_bytes(records[12:16], "little") :]
        return gone

    def close(self) -> None:
        """End wait(), from any thread."""
        os.eventfd_write(self.closing, 1)

    def release(self) -> None:
        """Close the descriptors, in the thread that waits."""
        os.close(self.closing)
        if self.inotify >= 0:
            os.close(self.inotify)
