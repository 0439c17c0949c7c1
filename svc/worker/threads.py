"""The worker's threads: one way to start them, one way to retry in them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any

from svc.db.connect import close_database
from svc.errors import EngineUnavailable, SvcError

OWNERS_AT_ONCE = 4  # whose agents one part of the worker starts and asks: each is a process of the host


def start(target: Callable[..., object], *arguments: Any, nice: int = 0) -> threading.Thread:
    """Run `target` in a daemon thread, with less priority if it is `nice`; closes its database connection."""

    def run() -> None:
        try:
            if nice:  # Linux schedules a thread like a process
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), nice)
            target(*arguments)
        finally:
            close_database()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def retry_unavailable(
    act: Callable[[], dict[str, Any]], tries: int, pause_s: float, is_over: Callable[[SvcError], bool]
) -> dict[str, Any]:
    """The result of `act`, retried after EngineUnavailable with pauses that double, unless that is_over."""
    for attempt in range(tries - 1):
        try:
            return act()
        except EngineUnavailable as error:
            if is_over(error):
                raise
        time.sleep(pause_s * 2**attempt)
    return act()
