"""The places of connections: how many a client may have before it has shown who it is, and a user after it.

Everybody who comes by loopback has the same address, so that a client is a user of the host. That user signs
nobody in: any page in that person's browser would be the caller.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Seated(Protocol):
    """What has a place."""

    def close(self) -> None:
        """End it; it leaves its place by that."""


class Bounds(NamedTuple):
    """How many connections there may be."""

    total: int = 1024  # more wait in the kernel's queue
    strangers: int = 64  # that have opened no app yet
    strangers_of_client: int = 16
    of_user: int = 256


BOUNDS = Bounds()


class Seats:
    """Who has which place; each one has one at most."""

    def __init__(self, bounds: Bounds = BOUNDS) -> None:
        self.bounds = bounds
        self.strangers: dict[str, dict[Seated, None]] = {}  # by client, the oldest first
        self.visitors: dict[str, dict[Seated, None]] = {}  # by user
        self.places: dict[Seated, tuple[dict[str, dict[Seated, None]], str]] = {}

    def __len__(self) -> int:
        return len(self.places)

    @property
    def is_full(self) -> bool:
        """Whether nobody more can come in."""
        return len(self.places) >= self.bounds.total

    def enter(self, one: Seated, client: str) -> None:
        """Give a newcomer a place; who has too many of them already loses the oldest.

        When all places of strangers are taken, it is one of the client that has most.
        """
        self._put(one, self.strangers, client)
        count = sum(map(len, self.strangers.values()))
        if len(self.strangers[client]) > self.bounds.strangers_of_client:
            next(iter(self.strangers[client])).close()
        elif count > self.bounds.strangers:
            most = max(self.strangers.values(), key=len)
            next(iter(most)).close()

    def admit(self, one: Seated, user: str) -> None:
        """It has opened an app as that user, whose oldest goes for one too many."""
        if one not in self.places:
            return  # it has ended meanwhile
        self.leave(one)
        self._put(one, self.visitors, user)
        if len(self.visitors[user]) > self.bounds.of_user:
            next(iter(self.visitors[user])).close()

    def leave(self, one: Seated) -> None:
        """It has ended."""
        found = self.places.pop(one, None)
        if found is not None:
            table, key = found
            del table[key][one]
            if not table[key]:
                del table[key]

    def _put(self, one: Seated, table: dict[str, dict[Seated, None]], key: str) -> None:
        table.setdefault(key, {})[one] = None
        self.places[one] = table, key
