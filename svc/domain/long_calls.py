"""Count of the long calls in progress, so that short requests always find a free thread.

One count for each listener's process, limited per user, per address and in total:
exec, transfers and archives. Streams and terminals use no thread, and have a count of their own.
What only computes for a while has turns: one of each user at a time.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager

from svc.domain import addresses
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.limits import LONG_CALLS_PER_ADDRESS, LONG_CALLS_PER_USER, LONG_CALLS_TOTAL

RETRY_AFTER_S = 5

_lock = threading.Lock()
_running: Counter[int] = Counter()
_of_address: Counter[str] = Counter()
_turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)


@contextmanager
def counted(caller: Caller) -> Iterator[None]:
    """Count the block as one long call of the caller; raises TooManyRequests at a limit."""
    client = caller.client or addresses.client_of(caller.address)
    with _lock:
        if _running[caller.user_id] >= LONG_CALLS_PER_USER:
            raise TooManyRequests(
                f"you already have {LONG_CALLS_PER_USER} long calls in progress", retry_after_s=RETRY_AFTER_S
            )
        if _running.total() >= LONG_CALLS_TOTAL:
            raise TooManyRequests("too many long calls are in progress", retry_after_s=RETRY_AFTER_S)
        if client and _of_address[client] >= LONG_CALLS_PER_ADDRESS:
            raise TooManyRequests("too many long calls come from your address", retry_after_s=RETRY_AFTER_S)
        _running[caller.user_id] += 1
        _of_address[client] += 1
    try:
        yield
    finally:
        with _lock:
            _running[caller.user_id] -= 1
            _of_address[client] -= 1
            if not _running[caller.user_id]:
                del _running[caller.user_id]
            if not _of_address[client]:
                del _of_address[client]


def turn(caller: Caller) -> threading.Lock:
    """To be held while a large reply is checked: one thread of a user computes, whoever else waits for 5 ms.

    Each of sixteen threads that compute has the interpreter for 5 ms before the next request of others.
    """
    with _lock:
        return _turns[caller.user_id]
