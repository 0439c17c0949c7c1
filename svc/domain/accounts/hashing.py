"""Password hashing in a small thread pool with a bounded queue: a hash takes a quarter of a second of a core.

The threads have a low priority, so that remote logins do not slow down the users
of the host; bcrypt releases the interpreter lock.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import NamedTuple, TypeVar

from svc.domain.accounts import keys, passwords
from svc.errors import TooManyRequests
from svc.limits import HASHES_QUEUED_MAX

HASH_S = 0.3  # approximate duration of one hash
NICE = 10  # with the lowest priority logins would starve on a busy host

Result = TypeVar("Result")

_creating = threading.Lock()  # one pool, also for two concurrent first requests


class Pool(NamedTuple):
    """The threads, with one slot for each of them and for each queued request."""

    threads: ThreadPoolExecutor
    slots: threading.BoundedSemaphore
    retry_after_s: int


def verify(password: str, stored: str | None) -> bool:
    """passwords.verify in the pool; raises TooManyRequests when HASHES_QUEUED_MAX requests are queued."""
    secret = keys.secret()
    return _in_pool(lambda: passwords.verify(password, stored, secret))


def hash_password(normalised: str) -> str:
    """passwords.hash_password in the pool; raises TooManyRequests as verify does."""
    secret = keys.secret()
    return _in_pool(lambda: passwords.hash_password(normalised, secret))


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


def _in_pool(work: Callable[[], Result]) -> Result:
    with _creating:
        pool = _pool()
    if not pool.slots.acquire(blocking=False):
        raise TooManyRequests("too many logins at once; try again", retry_after_s=pool.retry_after_s)
    try:
        return pool.threads.submit(work).result()
    finally:
        pool.slots.release()
