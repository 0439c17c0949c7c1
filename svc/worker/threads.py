"""The worker's threads: one way to start them, one way to retry in them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from svc.db.connect import close_database
from svc.errors import EngineUnavailable, SvcError


def start(target: Callable[..., object], *arguments: Any) -> threading.Thread:
    """Run `target` in a daemon thread; its database connection is closed at its end."""

    def run() -> None:
        try:
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
