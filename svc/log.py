"""The log of every svc process but the helper: structured lines on standard error.

JSON, so that no user-chosen text can forge a line. No secrets, no request bodies, no
environments. Whoever sends many requests must not fill the log, nor displace the lines of others: what a
process may write in a second is bounded, and lines that strangers cause are counted beyond a few.
"""

from __future__ import annotations

import contextlib
import json
import re
import sys
import threading
import time

REDACTED = "[redacted]"
BYTES_A_SECOND = 32 * 1024  # of a process that calls bound()
BURST = 256 * 1024
RESERVED = BURST // 2  # for warnings and errors
PATH_MAX = 200  # characters of a request's path

# The secret of a token or ticket, percent-encoded or not; a token's first four characters are public
# (lists have them).
_SECRET = re.compile(r"(svc(?:_|%5f)(?:pat|tkt)(?:_|%5f)[0-9a-z]{4})[0-9a-z]+", re.IGNORECASE)


def redacted(text: str) -> str:
    """The text with the secrets of tokens and tickets redacted."""
    if "svc" not in (lowered := text.lower()) or not ("pat" in lowered or "tkt" in lowered):
        return text
    return _SECRET.sub(rf"\1{REDACTED}", text)


def log(process: str, message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts} as one line."""
    line = _line(process, message, level, **facts)
    if _budget is not None:
        left_out = _budget.take(len(line), 0 if level in ("warning", "error", "critical") else RESERVED)
        if left_out < 0:
            return
        if left_out:
            line = _line(process, "lines left out", "warning", count=left_out) + "\n" + line
    with contextlib.suppress(OSError):  # nobody reads the pipe any more, or the disk below a file is full
        sys.stderr.write(redacted(line) + "\n")
        sys.stderr.flush()


def _line(process: str, message: str, level: str, **facts: object) -> str:
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return json.dumps(
        {"at": at, "level": level, "process": process, "message": message, **facts}, default=str
    )


def shortened(path: str) -> str:
    """The path of a request for a line: its first characters, printable ones alone."""
    first = "".join(character if character.isprintable() else "?" for character in path[:PATH_MAX])
    return first if len(path) <= PATH_MAX else f"{first}..."


class _Budget:
    """The bytes that this process may write now."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.left, self.refilled_at = float(BURST), time.monotonic()
        self.left_out, self.reported_at = 0, 0.0

    def take(self, size: int, kept: int) -> int:
        """Spend them, unless less than `kept` would be left: -1 then, for a line that is left out.

        Returns how many were, once a second.
        """
        with self.lock:
            now = time.monotonic()
            self.left = min(BURST, self.left + (now - self.refilled_at) * BYTES_A_SECOND)
            self.refilled_at = now
            if self.left - size < kept:
                self.left_out += 1
                return -1
            self.left -= size
            if not self.left_out or now < self.reported_at + 1:
                return 0
            left_out, self.left_out, self.reported_at = self.left_out, 0, now
            return left_out


_budget: _Budget | None = None


def bound() -> None:
    """From now on this process writes BYTES_A_SECOND to its log; more lines are counted."""
    global _budget
    _budget = _Budget()


class Counted:
    """Lines about what strangers send: a few a second, and how many more there were."""

    def __init__(self, process: str, message: str, a_second: int) -> None:
        self.process, self.message, self.a_second = process, message, a_second
        self.lock = threading.Lock()
        self.began = 0.0
        self.written = self.left_out = 0

    def write(self, level: str, **facts: object) -> None:
        """Log one, or count it; the count is logged with the first line of a later second."""
        with self.lock:
            now = time.monotonic()
            left_out = 0
            if now > self.began + 1:
                left_out, self.left_out = self.left_out, 0
                self.began, self.written = now, 0
            self.written += 1
            if self.written > self.a_second:
                self.left_out += 1
                return
        if left_out:
            log(self.process, f"lines left out: {self.message}", "warning", count=left_out)
        log(self.process, self.message, level, **facts)
