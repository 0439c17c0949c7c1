"""The start of the trial, stored in the database and in a root-owned file.

"Trial of 90 days from first `migrate` (written in the database and in a
root-owned file beside it), not reset by deleting or restoring the database":
the earlier of both wins, and a missing one is written again.
"""

from __future__ import annotations

import os
import re
import stat

from svc.db.connect import database, write
from svc_helper import atomic_file

FACT = "trial_started_at"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def file_of(state_dir: str) -> str:
    """The root-owned file."""
    return os.path.join(state_dir, "trial")


def read_file(state_dir: str) -> str | None:
    """The start in the file; None without a readable file with a valid time."""
    try:
        descriptor = os.open(file_of(state_dir), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            return None
        return checked(os.read(descriptor, 64).decode("ascii", "replace").strip())
    finally:
        os.close(descriptor)


def write_file(state_dir: str, start: str) -> None:
    """Write the file atomically (root only; the directory belongs to root)."""
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    atomic_file.replace(file_of(state_dir), start.encode() + b"\n", 0o644)


def resolve(present: str, in_file: str | None) -> str:
    """The earliest of the times in the database, in the file and now; written to the database."""
    row = database.execute_sql("SELECT value FROM facts WHERE name = ?", (FACT,)).fetchone()
    start = min(time for time in (checked(row[0]) if row else None, in_file, present) if time)
    if row != (start,):
        with write():
            database.execute_sql("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (FACT, start))
    return start


def checked(untrusted: str) -> str | None:
    """The text if it is a time in the format of `ids.now`, else None."""
    return untrusted if TIME.fullmatch(untrusted) else None
