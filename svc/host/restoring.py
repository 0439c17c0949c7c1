"""The note of a restore that is under way: while it is there, nothing may use the database.

Root's own file, where the app cannot write (an ordinary user's: beside the database). It is written
before a database is replaced and removed after, so that it is found only after an interruption; then
`svc admin restore --finish` completes the replacement. Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

from svc.errors import DatabaseRefused
from svc.host import notes, switching
from svc.host.owner import admin_command

NAME = "restore-under-way"
DRAFT = ".restoring"  # suffix of the new database until it takes the place of the old one
LOGS = ("-wal", "-shm", "-journal")  # of SQLite: beside another database they would be applied to it


def path_of(state_dir: str, database: str) -> str:
    """The path of the note."""
    return os.path.join(state_dir, NAME) if os.geteuid() == 0 else f"{database}.{NAME}"


def find(state_dir: str, database: str) -> dict[str, Any] | None:
    """The note on this database; None when no restore of it was interrupted."""
    found = notes.read(path_of(state_dir, database))
    return found if found is not None and found.get("database") == database else None


def put(state_dir: str, note: dict[str, Any]) -> None:
    """Write the note durably."""
    notes.put(path_of(state_dir, note["database"]), note)


def remove(state_dir: str, database: str) -> None:
    """Remove the note durably: the replacement is complete."""
    notes.remove(path_of(state_dir, database))


def remove_draft(path: str) -> None:
    """As the database's owner: remove what an interrupted preparation has left beside it."""
    for suffix in ("", *LOGS, ".held", ".reserve", ".condition"):
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path + DRAFT + suffix)


def require_none(state_dir: str, database: str) -> None:
    """Raise DatabaseRefused while a restore of the database, or a switch of versions, is incomplete."""
    switching.require_none(state_dir, database)
    if find(state_dir, database) is not None:
        raise DatabaseRefused(
            f"a restore of {database} was interrupted; nothing uses the database until it is complete",
            hint=admin_command("restore --finish", database),
        )
