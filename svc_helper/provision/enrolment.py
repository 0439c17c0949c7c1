"""Changes of the enrolment list, which the resident helper only reads."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from svc_helper import atomic_file
from svc_helper.root.enrolment import Entry, parse


@contextlib.contextmanager
def changing(state_dir: str) -> Iterator[dict[str, Entry]]:
    """The entries by name, to be changed in place; written back when the block ends.

    One change at a time, across all helpers. The lock is a file that only root can open, since
    whoever opens one can hold it. Raises OSError for a list that others than root may write.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    lock = os.open(os.path.join(state_dir, "enrolled.lock"), flags, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = os.path.join(state_dir, "enrolled")
        entries = {entry.name: entry for entry in parse(path)}
        yield entries
        lines = [
            f"{entry.name} {entry.uid} {'administrator' if entry.administrator else 'user'}\n"
            for entry in sorted(entries.values())
        ]
        atomic_file.replace(path, "".join(lines).encode(), 0o644)
    finally:
        os.close(lock)
