"""What each client has of a listener, threads and connections, and who gives way when there are too many.

Only the worker's main thread uses these; nothing here touches a socket.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from svc.limits import BODIES_PER_CLIENT, THREADS_PER_CLIENT, THREADS_RESERVED

RESERVED_EACH = 2  # of THREADS_RESERVED, for one client


class Share:
    """One client's part: connections in threads, waiting for one, and idle (watched by the poller)."""

    def __init__(self, client: str) -> None:
        self.client = client
        self.running = 0
        self.bodies = 0  # of `running`, those whose threads read a body
        self.waiting: deque[Any] = deque()
        self.idle: dict[Any, None] = {}  # the longest idle first

    @property
    def connections(self) -> int:
        """All its connections."""
        return self.running + len(self.waiting) + len(self.idle)

    def next(self) -> Any:
        """The connection that waits longest and may have a thread; None without one.

        Those whose bodies are to be read have BODIES_PER_CLIENT threads: the others are never behind them.
        """
        may_read = self.bodies < BODIES_PER_CLIENT
        return next((one for one in self.waiting if may_read or not one.holds_body), None)

    def expendable(self) -> Any:
        """The connection to close first: the longest idle, else the last that waits; None without one."""
        if self.idle:
            return next(iter(self.idle))
        return self.waiting[-1] if self.waiting else None


class Shares:
    """The shares of all clients that have a connection."""

    def __init__(self, threads: int, connections: int) -> None:
        self.threads, self.most = threads, connections
        self.reserved = min(THREADS_RESERVED, threads // 4)
        self.running = self.connections = 0
        self.of_client: dict[str, Share] = {}

    def find(self, client: str) -> Share:
        """The client's share."""
        share = self.of_client.get(client)
        if share is None:
            share = self.of_client[client] = Share(client)
        return share

    def giving_way(self, newcomer: Share | None = None) -> Any:
        """The connection to close when there is one too many; None when no other may be closed.

        It is of the client with the most: one with few always gets in. The newcomer loses
        its own when nobody has more.
        """
        candidates = [share for share in self.of_client.values() if share.idle or share.waiting]
        largest = max(candidates, key=lambda share: share.connections, default=None)
        if newcomer is not None and (largest is None or newcomer.connections >= largest.connections):
            largest = newcomer
        return largest.expendable() if largest else None

    def may_run(self, share: Share) -> bool:
        """Whether the client may have one more thread."""
        if self.running >= self.threads or share.running >= THREADS_PER_CLIENT:
            return False
        return share.running < RESERVED_EACH or self.running < self.threads - self.reserved

    def next_waiting(self) -> Any:
        """The connection that gets the next thread, taken from its queue; None when nobody may have one.

        It is of the client with the fewest threads.
        """
        waiting = [(share, share.next()) for share in self.of_client.values() if share.waiting]
        candidates = [(share, one) for share, one in waiting if one is not None]
        share, chosen = min(candidates, key=lambda found: found[0].running, default=(None, None))
        if share is None or not self.may_run(share):
            return None
        share.waiting.remove(chosen)
        return chosen

    def forget(self, share: Share) -> None:
        """Drop the share of a client that has no connection any more."""
        if not share.connections:
            self.of_client.pop(share.client, None)
