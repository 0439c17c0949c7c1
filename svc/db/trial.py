"""When the trial began: kept in the database and in a root-owned file beside it.

"Trial of 90 days from first `migrate` (written in the database and in a
root-owned file beside it), not reset by deleting or restoring the database":
the earlier of both wins, and the one that is missing is written again.
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
    """The start that the file tells; None when there is no readable file with a time in it."""
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
    """Write the file whole or not at all (root only; the directory is root's)."""
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    atomic_file.replace(file_of(state_dir), start.encode() + b"\n", 0o644)


def settle(present: str, in_file: str | None) -> str:
    """The trial's start by the database, the file and the present; the database has it afterwards."""
    row = database.execute_sql("SELECT value FROM facts WHERE name = ?", (FACT,)).fetchone()
    start = min(time for time in (checked(row[0]) if row else None, in_file, present) if time)
    if row != (start,):
        with write():
            database.execute_sql("INSERT OR REPLACE INTO facts (name, value) VALUES (?, ?)", (FACT, start))
    return start


def checked(untrusted: str) -> str | None:
    """The text when it is a time as `ids.now` writes it."""
    return untrusted if TIME.fullmatch(untrusted) else None
