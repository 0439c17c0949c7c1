"""Waiting for what happens in another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 10, every: float = 0.05) -> Any:
    """The first true answer of a condition; AssertionError when it stays false for too long.

    A condition that takes its time, as a command does, is asked for half of the time at most.
    """
    deadline = time.monotonic() + seconds
    while True:
        began = time.monotonic()
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(max(every, time.monotonic() - began))
