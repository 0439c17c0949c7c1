"""Places of what lasts: long calls and open streams, counted per user, per address and in total.

Each listener's process has counts of its own. A long call (exec, transfer, archive) holds a thread, and the
limits leave threads for short requests. Streams and terminals hold none, so they are counted apart.
What only computes for a while has turns: one of each user at a time.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from svc import limits
from svc.domain import addresses
from svc.domain.principal import Caller
from svc.errors import TooManyRequests

RETRY_AFTER_S = 5


class Place:
    """One place, until it is released."""

    def __init__(self, places: Places, user_id: int, client: str) -> None:
        self.places, self.user_id, self.client = places, user_id, client
        self.is_taken = True

    def release(self) -> None:
        """Free it; harmless a second time."""
        with self.places.lock:
            if not self.is_taken:
                return
            self.is_taken = False
            of_user, of_address = self.places.of_user, self.places.of_address
            of_user[self.user_id] -= 1
            of_address[self.client] -= 1
            if not of_user[self.user_id]:
                del of_user[self.user_id]
            if not of_address[self.client]:
                del of_address[self.client]


class Places:
    """The places of one kind; `name` and `state` are parts of the messages of refusals."""

    def __init__(self, name: str, state: str, *, per_user: int, per_address: int, total: int) -> None:
        self.name, self.state = name, state
        self.per_user, self.per_address, self.total = per_user, per_address, total
        self.lock = threading.Lock()
        self.of_user: Counter[int] = Counter()
        self.of_address: Counter[str] = Counter()

    def take(self, caller: Caller) -> Place:
        """A place for one more of the caller; raises TooManyRequests at a limit."""
        client = caller.client or addresses.client_of(caller.address)
        with self.lock:
            if self.of_user[caller.user_id] >= self.per_user:
                raise TooManyRequests(
                    f"you already have {self.per_user} {self.name} {self.state}", retry_after_s=RETRY_AFTER_S
                )
            if self.of_user.total() >= self.total:
                raise TooManyRequests(f"too many {self.name} are {self.state}", retry_after_s=RETRY_AFTER_S)
            if client and self.of_address[client] >= self.per_address:
                raise TooManyRequests(
                    f"too many {self.name} come from your address", retry_after_s=RETRY_AFTER_S
                )
            self.of_user[caller.user_id] += 1
            self.of_address[client] += 1
        return Place(self, caller.user_id, client)

    @contextmanager
    def counted(self, caller: Caller) -> Iterator[None]:
        """Hold a place of the caller during the block; raises TooManyRequests at a limit."""
        place = self.take(caller)
        try:
            yield
        finally:
            place.release()

    def taken(self) -> int:
        """How many places are taken."""
        with self.lock:
            return self.of_user.total()


long_calls = Places(
    "long calls",
    "in progress",
    per_user=limits.LONG_CALLS_PER_USER,
    per_address=limits.LONG_CALLS_PER_ADDRESS,
    total=limits.LONG_CALLS_TOTAL,
)
streams = Places(
    "streams",
    "open",
    per_user=limits.STREAMS_PER_USER,
    per_address=limits.STREAMS_PER_ADDRESS,
    total=limits.STREAMS_TOTAL,
)

_lock = threading.Lock()
_turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)


def turn(caller: Caller) -> threading.Lock:
    """To be held while a large reply is checked: one thread of a user computes, whoever else waits for 5 ms.

    Each of sixteen threads that compute has the interpreter for 5 ms before the next request of others.
    """
    with _lock:
        return _turns[caller.user_id]
