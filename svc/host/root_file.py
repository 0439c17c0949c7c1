"""Times in small files of root's, which everybody reads and only root writes. Standard library only."""

from __future__ import annotations

import os
import re
import stat
from datetime import datetime

TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
LATEST = "2200"  # later times are mistakes, and must not overflow a sum
FILE_MAX = 256


def read(path: str) -> str:
    """The text of the file; empty when it is missing or is no regular file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return ""
        return os.read(descriptor, FILE_MAX).decode("ascii", "replace")
    finally:
        os.close(descriptor)


def checked(untrusted: str) -> str | None:
    """The text if it is a time in the format of `ids.now`, else None."""
    if not TIME.fullmatch(untrusted) or untrusted > LATEST:
        return None
    try:
        datetime.fromisoformat(untrusted)
    except ValueError:
        return None
    return untrusted
