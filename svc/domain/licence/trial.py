"""The start of the trial, stored in the database and in a root-owned file.

"Trial of 90 days from first `migrate` (written in the database and in a
root-owned file beside it), not reset by deleting or restoring the database":
the earlier of both wins, and a missing one is written again. With neither, a
database that is older tells it by its first migration.
"""

from __future__ import annotations

import os

from svc.db import facts
from svc.db.connect import database
from svc.host import root_file
from svc.host.root_file import checked
from svc_helper import atomic_file

FACT = "trial_started_at"


def file_of(state_dir: str) -> str:
    """The root-owned file."""
    return os.path.join(state_dir, "trial")


def read_file(state_dir: str) -> str | None:
    """The start in the file; None without a readable file with a valid time."""
    return checked(root_file.read(file_of(state_dir)).strip())


def write_file(state_dir: str, start: str) -> None:
    """Write the file atomically (root only; the directory belongs to root)."""
    os.makedirs(state_dir, mode=0o755, exist_ok=True)
    atomic_file.replace(file_of(state_dir), start.encode() + b"\n", 0o644)


def find(in_file: str | None) -> str | None:
    """When the trial began: the earlier of the times in the database and in the file; writes nothing."""
    times = [time for time in (checked(facts.find(FACT).get(FACT, "")), in_file) if time]
    if not times:
        first = database.execute_sql("SELECT min(applied_at) FROM schema_migrations").fetchone()[0]
        return checked(first or "")
    return min(times)


def resolve(present: str, in_file: str | None) -> str:
    """The earliest of the times in the database, in the file and now; written to the database."""
    start = min(find(in_file) or present, present)
    if facts.find(FACT) != {FACT: start}:
        facts.put({FACT: start})
    return start
