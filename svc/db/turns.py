"""The queue in front of the write lock: this process's threads write in the order in which they came.

SQLite's own wait is not fair: a waiting connection tries again after pauses that grow to
0.1 s, and a newer one that happens to come in between wins. With this queue only one thread
of a process tries at a time.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class NoTurn(Exception):
    """The turn did not come in time."""


class Turns:
    """One holder at a time, first come, first served."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held = False
        self.waiting: deque[threading.Lock] = deque()  # one for each waiting thread, released at its turn

    @contextmanager
    def turn(self, within_s: float) -> Iterator[None]:
        """Hold the turn for the length of the block; NoTurn when it does not come within the time."""
        self._take(within_s)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, within_s: float) -> None:
        with self.lock:
            if not self.held:
                self.held = True
                return
            mine = threading.Lock()
            mine.acquire()
            self.waiting.append(mine)
        if mine.acquire(timeout=within_s):
            return
        with self.lock:
            if mine in self.waiting:  # else it was passed on to this thread just now
                self.waiting.remove(mine)
                raise NoTurn

    def _pass_on(self) -> None:
        """Give the turn to the thread that has waited longest; a newcomer cannot come in between."""
        with self.lock:
            if self.waiting:
                self.waiting.popleft().release()
            else:
                self.held = False
