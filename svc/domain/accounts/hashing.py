"""Password hashing in a small thread pool with a bounded queue: a hash takes a quarter of a second of a core.

The threads have a low priority, so that remote logins do not slow down the users
of the host; bcrypt releases the interpreter lock. Whoever logs in with the right password is never
throttled, so each user name has few places.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, TypeVar

from svc.domain.accounts import keys, passwords
from svc.errors import TooManyRequests
from svc.limits import HASHES_PER_NAME, HASHES_QUEUED_MAX

HASH_S = 0.3  # approximate duration of one hash
NICE = 10  # with the lowest priority logins would starve on a busy host

Result = TypeVar("Result")

_lock = threading.Lock()
_of_name: Counter[str] = Counter()  # hashes in the pool and its queue


class Pool(NamedTuple):
    """The threads, with one slot for each of them and for each queued request."""

    threads: ThreadPoolExecutor
    slots: threading.BoundedSemaphore
    retry_after_s: int


def verify(name: str, password: str, stored: str | None) -> bool:
    """passwords.verify in the pool; raises TooManyRequests for one more of a queue or name that is full."""
    secret = keys.secret()
    return _in_pool(name, lambda: passwords.verify(password, stored, secret))


def hash_password(name: str, normalised: str) -> str:
    """passwords.hash_password in the pool; raises TooManyRequests as verify does."""
    secret = keys.secret()
    return _in_pool(name, lambda: passwords.hash_password(normalised, secret))


def at_once() -> int:
    """The number of concurrent hashes: half of the processors."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


@cache
def _pool() -> Pool:
    """Created at the first hash, in the process that hashes: "no thread is open at the fork"."""
    return Pool(
        ThreadPoolExecutor(at_once(), "hash", initializer=_lower_priority),
        threading.BoundedSemaphore(at_once() + HASHES_QUEUED_MAX),
        math.ceil(HASHES_QUEUED_MAX * HASH_S / at_once()),
    )


def _lower_priority() -> None:
    """Lower the priority of this thread, which Linux schedules like a process."""
    with contextlib.suppress(PermissionError):  # the whole service has a lower one already
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def _in_pool(name: str, work: Callable[[], Result]) -> Result:
    pool = _take_place(name)
    try:
        return pool.threads.submit(work).result()
    finally:
        with _lock:
            _of_name[name] -= 1
            if not _of_name[name]:
                del _of_name[name]
        pool.slots.release()


def _take_place(name: str) -> Pool:
    """The pool, with a place in it for a hash of this user name."""
    with _lock:
        pool = _pool()  # one, also for two concurrent first requests
        if _of_name[name] >= HASHES_PER_NAME:
            message = "too many logins of one name at once; try again"
            raise TooManyRequests(message, retry_after_s=math.ceil(HASH_S))
        if not pool.slots.acquire(blocking=False):
            raise TooManyRequests("too many logins at once; try again", retry_after_s=pool.retry_after_s)
        _of_name[name] += 1
    return pool
