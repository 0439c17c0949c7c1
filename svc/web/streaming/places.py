"""Count of the open streams, apart from quick and from long calls: they use no thread.

One count for each listener's process, limited per user, per address and in total.
"""

from __future__ import annotations

import threading
from collections import Counter

from svc.domain import addresses
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.limits import STREAMS_PER_ADDRESS, STREAMS_PER_USER, STREAMS_TOTAL

RETRY_AFTER_S = 5

_lock = threading.Lock()
_of_user: Counter[int] = Counter()
_of_address: Counter[str] = Counter()


class Place:
    """One stream's place, until it is released."""

    def __init__(self, user_id: int, client: str) -> None:
        self.user_id, self.client = user_id, client
        self.is_taken = True

    def release(self) -> None:
        """Free it; harmless a second time."""
        with _lock:
            if not self.is_taken:
                return
            self.is_taken = False
            _of_user[self.user_id] -= 1
            _of_address[self.client] -= 1
            if not _of_user[self.user_id]:
                del _of_user[self.user_id]
            if not _of_address[self.client]:
                del _of_address[self.client]


def take(caller: Caller) -> Place:
    """A place for one more stream of the caller; raises TooManyRequests at a limit."""
    client = caller.client or addresses.client_of(caller.address)
    with _lock:
        if _of_user[caller.user_id] >= STREAMS_PER_USER:
            raise TooManyRequests(
                f"you already have {STREAMS_PER_USER} streams open", retry_after_s=RETRY_AFTER_S
            )
        if _of_user.total() >= STREAMS_TOTAL:
            raise TooManyRequests("too many streams are open", retry_after_s=RETRY_AFTER_S)
        if client and _of_address[client] >= STREAMS_PER_ADDRESS:
            raise TooManyRequests("too many streams come from your address", retry_after_s=RETRY_AFTER_S)
        _of_user[caller.user_id] += 1
        _of_address[client] += 1
    return Place(caller.user_id, client)


def taken() -> int:
    """How many streams are open."""
    with _lock:
        return _of_user.total()
