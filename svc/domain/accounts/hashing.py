"""Password hashes, few at a time: a quarter of a second of a core each, so remote logins wait in line.

They run in threads of low priority, so that the people on the host do not wait
with them; bcrypt leaves the interpreter to the other threads meanwhile.
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

HASH_S = 0.3  # about what one takes
NICE = 10  # at the lowest priority a login would have no turn at all on a host that is full

Result = TypeVar("Result")

_making = threading.Lock()  # one line, also when the first two come together


class Line(NamedTuple):
    """The threads, and the places in them and in the line before them."""

    threads: ThreadPoolExecutor
    places: threading.BoundedSemaphore
    retry_after_s: int


def verify(password: str, stored: str | None) -> bool:
    """passwords.verify in a turn of its own; raises TooManyRequests when HASHES_QUEUED_MAX wait already."""
    secret = keys.secret()
    return _in_turn(lambda: passwords.verify(password, stored, secret))


def hash_password(normalised: str) -> str:
    """passwords.hash_password in a turn of its own; raises TooManyRequests as verify does."""
    secret = keys.secret()
    return _in_turn(lambda: passwords.hash_password(normalised, secret))


def at_once() -> int:
    """How many hashes this host may make at a time: half of the processors are for everything else."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


@cache
def _line() -> Line:
    """Made at the first hash, in the process that hashes: "no thread is open at the fork"."""
    return Line(
        ThreadPoolExecutor(at_once(), "hash", initializer=_step_back),
        threading.BoundedSemaphore(at_once() + HASHES_QUEUED_MAX),
        math.ceil(HASHES_QUEUED_MAX * HASH_S / at_once()),
    )


def _step_back() -> None:
    """Give this thread a low priority; to Linux it is a process of its own there."""
    with contextlib.suppress(PermissionError):  # the whole service was started at a lower one still
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)


def _in_turn(make: Callable[[], Result]) -> Result:
    with _making:
        line = _line()
    if not line.places.acquire(blocking=False):
        raise TooManyRequests("too many logins at once; try again", retry_after_s=line.retry_after_s)
    try:
        return line.threads.submit(make).result()
    finally:
        line.places.release()
