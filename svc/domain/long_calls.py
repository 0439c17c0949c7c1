"""Calls that may last are counted here, so that `ws list` always finds a thread.

Also where many users come from one address, which has a number of a listener's threads.

One count per listener's process: exec now; transfers, archives, streams and
terminals take their places from the same one.
"""

from __future__ import annotations

import ipaddress
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.limits import LONG_CALLS_PER_ADDRESS, LONG_CALLS_PER_USER, LONG_CALLS_TOTAL

RETRY_AFTER_S = 5

_lock = threading.Lock()
_running: Counter[int] = Counter()
_of_address: Counter[str] = Counter()


@contextmanager
def counted(caller: Caller) -> Iterator[None]:
    """Hold one of the caller's places; raises TooManyRequests when there is none left."""
    line = _line(caller.address)
    with _lock:
        if _running[caller.user_id] >= LONG_CALLS_PER_USER:
            raise TooManyRequests(
                f"you already have {LONG_CALLS_PER_USER} long calls under way", retry_after_s=RETRY_AFTER_S
            )
        if _running.total() >= LONG_CALLS_TOTAL:
            raise TooManyRequests("too many long calls are under way", retry_after_s=RETRY_AFTER_S)
        if line and _of_address[line] >= LONG_CALLS_PER_ADDRESS:
            raise TooManyRequests("too many long calls come from your address", retry_after_s=RETRY_AFTER_S)
        _running[caller.user_id] += 1
        _of_address[line] += 1
    try:
        yield
    finally:
        with _lock:
            _running[caller.user_id] -= 1
            _of_address[line] -= 1
            if not _running[caller.user_id]:
                del _running[caller.user_id]
            if not _of_address[line]:
                del _of_address[line]


def _line(address: str) -> str:
    """The address by which svc.web.gunicorn_worker.fair_worker counts threads; empty on the host socket."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address, 64), strict=False))
