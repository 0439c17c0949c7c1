"""The helper's log: JSON lines on standard error, with the keys of svc.log.

ASCII only, so that no untrusted control character reaches a terminal. No secret
passes through the helper. Every call that was made has its line; lines that the app can cause
without end are limited, so that they can neither hide that line nor fill root's disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections import Counter

WINDOW_S = 10
LINES_PER_SOURCE = 10  # in a window
LINES_MAX = 50  # of all sources together
SOURCES_NAMED = 20  # in the line that counts the rest


def log(message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts}; a broken log does not stop a call."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"at": at, "level": level, "process": "helper", "message": message, **facts})
    with contextlib.suppress(OSError):
        os.write(2, line.encode() + b"\n")


class LimitedLog:
    """Refusals and failures: the first lines of each source (a user, a pair), and a count of the rest."""

    def __init__(self) -> None:
        self.deadline: float | None = None  # when the window ends, if something is to be counted then
        self.until = 0.0
        self.written: Counter[str] = Counter()
        self.omitted: Counter[str] = Counter()

    def log(self, source: str, message: str, level: str = "info", **facts: object) -> None:
        """Write the line, or count it."""
        self.end_window()
        if self.has_room(source):
            self.written[source] += 1
            log(message, level, **facts)
        else:
            self.omitted[source] += 1
            self.deadline = self.until

    def has_room(self, source: str) -> bool:
        """Whether a line of the source would be written now."""
        return self.written[source] < LINES_PER_SOURCE and self.written.total() < LINES_MAX

    def end_window(self) -> None:
        """At its end: write how many lines were left out, and begin anew."""
        now = time.monotonic()
        if now < self.until:
            return
        if self.omitted:
            counts = dict(self.omitted.most_common(SOURCES_NAMED))
            log("lines left out", "warning", count=self.omitted.total(), sources=counts)
        self.deadline, self.until = None, now + WINDOW_S
        self.written, self.omitted = Counter(), Counter()
