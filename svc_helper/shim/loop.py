"""The shim's one thread: descriptors, and what is to be done when they are ready; times, and what then."""

from __future__ import annotations

import heapq
import select
import time
from collections.abc import Callable

Taker = Callable[[int], None]  # gets the events
IN, OUT, ERR, HUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP
_EVENTS = 64  # of one turn
_LONGEST_S = 3600.0


class Timer:
    """Something that is to be done once, unless it is dropped before."""

    __slots__ = ("act", "when")

    def __init__(self, when: float, act: Callable[[], None]) -> None:
        self.when = when
        self.act: Callable[[], None] | None = act

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when

    def drop(self) -> None:
        """Do not do it."""
        self.act = None


class Loop:
    """Who waits for what. A taker must never wait itself."""

    def __init__(self) -> None:
        self.ending = False
        self._epoll = select.epoll()
        self._turn = 0
        self._watched: dict[int, tuple[Taker, int, int]] = {}  # taker, mask, the turn that it came in
        self._timers: list[Timer] = []

    def watch(self, fd: int, mask: int, taker: Taker) -> None:
        """Call taker when fd has one of these events, or an error, for as long as that is so."""
        known = self._watched.get(fd)
        if known is None:
            self._epoll.register(fd, mask)
            self._watched[fd] = taker, mask, self._turn
            return
        if known[1] != mask:
            self._epoll.modify(fd, mask)
        self._watched[fd] = taker, mask, known[2]

    def unwatch(self, fd: int) -> None:
        """Forget fd, which is still open; one that nobody watches is forgotten already."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def later(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Do something after so many seconds."""
        timer = Timer(time.monotonic() + seconds, act)
        heapq.heappush(self._timers, timer)
        return timer

    def close(self) -> None:
        """Wait for nothing any more."""
        self._watched.clear()
        self._epoll.close()

    def run(self) -> None:
        """Serve until somebody sets `ending`."""
        while not self.ending:
            self.turn(_LONGEST_S)

    def turn(self, patience_s: float) -> None:
        """Serve what is ready now, or first after at most so many seconds."""
        while self._timers and self._timers[0].act is None:
            heapq.heappop(self._timers)
        if self._timers:
            patience_s = min(patience_s, max(0.0, self._timers[0].when - time.monotonic()))
        self._turn += 1
        for fd, events in self._epoll.poll(patience_s, _EVENTS):
            known = self._watched.get(fd)
            # A number that was given away again in this turn has not had these events.
            if known is not None and known[2] != self._turn:
                known[0](events)
        now = time.monotonic()
        while self._timers and self._timers[0].when <= now:
            act = heapq.heappop(self._timers).act
            if act is not None:
                act()
