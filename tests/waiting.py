"""Waiting for what happens in another process or thread."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


def until(condition: Callable[[], Any], seconds: float = 10, every: float = 0.05) -> Any:
    """The first true answer of a condition; AssertionError when it stays false for too long."""
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"still {found!r} after {seconds} s"
        time.sleep(every)
