"""The shim's event loop: callbacks for ready descriptors and for timers, in one thread."""

from __future__ import annotations

import heapq
import select
import time
from collections.abc import Callable

Handler = Callable[[int], None]  # gets the events
IN, OUT, ERR, HUP = select.EPOLLIN, select.EPOLLOUT, select.EPOLLERR, select.EPOLLHUP
_EVENTS = 64  # of one turn
_LONGEST_S = 3600.0


class Timer:
    """A callback at a time, unless it is dropped before."""

    __slots__ = ("act", "when")

    def __init__(self, when: float, act: Callable[[], None]) -> None:
        self.when = when
        self.act: Callable[[], None] | None = act

    def __lt__(self, other: Timer) -> bool:
        return self.when < other.when

    def drop(self) -> None:
        """Cancel the timer."""
        self.act = None


class Loop:
    """An epoll loop. Handlers must not block."""

    def __init__(self) -> None:
        self.ending = False
        self._epoll = select.epoll()
        self._turn = 0
        self._watched: dict[int, tuple[Handler, int, int]] = {}  # handler, mask, the turn of registration
        self._timers: list[Timer] = []

    def watch(self, fd: int, mask: int, handler: Handler) -> None:
        """Call handler while fd has one of these events or an error (level-triggered)."""
        known = self._watched.get(fd)
        if known is None:
            self._epoll.register(fd, mask)
            self._watched[fd] = handler, mask, self._turn
            return
        if known[1] != mask:
            self._epoll.modify(fd, mask)
        self._watched[fd] = handler, mask, known[2]

    def unwatch(self, fd: int) -> None:
        """Stop watching fd, which must still be open; no effect on one that is not watched."""
        if self._watched.pop(fd, None) is not None:
            self._epoll.unregister(fd)

    def later(self, seconds: float, act: Callable[[], None]) -> Timer:
        """Call `act` after so many seconds."""
        timer = Timer(time.monotonic() + seconds, act)
        heapq.heappush(self._timers, timer)
        return timer

    def close(self) -> None:
        """Close the epoll descriptor."""
        self._watched.clear()
        self._epoll.close()

    def run(self) -> None:
        """Run until `ending` is set."""
        while not self.ending:
            self.turn(_LONGEST_S)

    def turn(self, timeout_s: float) -> None:
        """Run the handlers of one poll, which waits for at most so many seconds, and the timers due."""
        while self._timers and self._timers[0].act is None:
            heapq.heappop(self._timers)
        if self._timers:
            timeout_s = min(timeout_s, max(0.0, self._timers[0].when - time.monotonic()))
        self._turn += 1
        for fd, events in self._epoll.poll(timeout_s, _EVENTS):
            known = self._watched.get(fd)
            # A number that was reused in this turn has not had these events.
            if known is not None and known[2] != self._turn:
                known[0](events)
        now = time.monotonic()
        while self._timers and self._timers[0].when <= now:
            act = heapq.heappop(self._timers).act
            if act is not None:
                act()
