"""The queue in front of the write lock: this process's users write by turns, each in the order of the calls.

SQLite's own wait is not fair: a waiting connection tries again after pauses that grow to
0.1 s, and a newer one that happens to come in between wins. With this queue only one thread
of a process tries at a time. A user with sixteen calls in it keeps everybody else waiting for one of them.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager


class NoTurn(Exception):
    """The turn did not come in time."""


class Turns:
    """One holder at a time; of those who wait each user in turn, and of one user whoever came first."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.held = False
        self.user = ""  # who had the last turn
        # One lock for each waiting thread, released at its turn: by user, whose turn is next first.
        self.waiting: dict[str, deque[threading.Lock]] = {}

    @contextmanager
    def turn(self, within_s: float, user: str = "") -> Iterator[None]:
        """Hold the turn for the length of the block; NoTurn when it does not come within the time."""
        self._take(within_s, user)
        try:
            yield
        finally:
            self._pass_on()

    def _take(self, within_s: float, user: str) -> None:
        with self.lock:
            if not self.held:
                self.held, self.user = True, user
                return
            mine = threading.Lock()
            mine.acquire()
            self.waiting.setdefault(user, deque()).append(mine)
        if mine.acquire(timeout=within_s):
            return
        with self.lock:
            own = self.waiting.get(user, deque())
            if mine in own:  # else it was passed on to this thread just now
                own.remove(mine)
                if not own:
                    del self.waiting[user]
                raise NoTurn

    def _pass_on(self) -> None:
        """Give the turn to the next user's first thread; a newcomer cannot come in between."""
        with self.lock:
            if not self.waiting:
                self.held = False
                return
            if self.user in self.waiting:  # had the last one: behind the others, those that came later too
                self.waiting[self.user] = self.waiting.pop(self.user)
            self.user = next(iter(self.waiting))
            own = self.waiting[self.user]
            own.popleft().release()
            if not own:
                del self.waiting[self.user]
