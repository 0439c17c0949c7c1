"""The note of a switch to another version that is under way: program and database may not fit each other.

Root's own file in SVC_STATE_DIR, written before the package is exchanged. While its step is one of UNUSABLE
the server does not start and commands do not use the database, but for those that the
switch itself runs. Standard library only, for the supervisor.
"""

from __future__ import annotations

import os
from typing import Any

from svc.errors import DatabaseRefused
from svc.host import notes
from svc.host.owner import admin_command

NAME = "switch-under-way"
IN_SWITCH = "SVC_SWITCHING"  # in the environment of the programs that a switch runs
PREPARED, PACKAGE, DATABASE, START = "prepared", "package", "database", "start"
UNUSABLE = {PACKAGE, DATABASE}  # what a program would find at the other steps is whole


def path_of(state_dir: str) -> str:
    """The path of the note."""
    return os.path.join(state_dir, NAME)


def find(state_dir: str) -> dict[str, Any] | None:
    """The note; None when no switch was interrupted. An ordinary user has none: only root switches."""
    return notes.read(path_of(state_dir)) if os.geteuid() == 0 else None


def require_none(state_dir: str, database: str) -> None:
    """Raise DatabaseRefused while a switch has left program and database apart; not in the switch itself."""
    if os.environ.get(IN_SWITCH):
        return
    note = find(state_dir)
    if note is not None and note.get("database") == database and note.get("step") in UNUSABLE:
        raise DatabaseRefused(
            f"a switch of svc to version {note.get('version')} was interrupted; nothing uses {database}"
            " until it is complete or undone",
            hint=admin_command("rollback apply --finish", database),
        )
