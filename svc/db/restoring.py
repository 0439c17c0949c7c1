"""The note of a restore that is under way: while it is there, nothing may use the database.

Root's own file, where the app cannot write (an ordinary user's: beside the database). It is written
before a database is replaced and removed after, so that it is found only after an interruption; then
`svc admin restore --finish` completes the replacement. Standard library only, for the supervisor.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from typing import Any

from svc.db.owner import admin_command
from svc.errors import DatabaseRefused
from svc_helper import atomic_file

NAME = "restore-under-way"
READ_MAX = 64 * 1024


def path_of(state_dir: str, database: str) -> str:
    """The path of the note."""
    return os.path.join(state_dir, NAME) if os.geteuid() == 0 else f"{database}.{NAME}"


def find(state_dir: str, database: str) -> dict[str, Any] | None:
    """The note on this database; None when no restore of it was interrupted."""
    path = path_of(state_dir, database)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DatabaseRefused(
            f"{path} cannot be read: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        try:
            found = json.loads(file.read(READ_MAX))
        except ValueError:
            found = None
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid() or not isinstance(found, dict):
        raise DatabaseRefused(f"{path} is not what svc wrote", hint="sudo svc admin doctor")
    return found if found.get("database") == database else None


def put(state_dir: str, note: dict[str, Any]) -> None:
    """Write the note durably."""
    path = path_of(state_dir, note["database"])
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    atomic_file.replace(path, json.dumps(note).encode() + b"\n", 0o600)


def remove(state_dir: str, database: str) -> None:
    """Remove the note durably: the replacement is complete."""
    path = path_of(state_dir, database)
    os.unlink(path)
    with contextlib.suppress(
        OSError
    ):  # a note that a power cut brings back is finished once more, by nothing
        atomic_file.sync_directory(os.path.dirname(path))


def require_none(state_dir: str, database: str) -> None:
    """Raise DatabaseRefused while a restore of the database is incomplete."""
    if find(state_dir, database) is not None:
        raise DatabaseRefused(
            f"a restore of {database} was interrupted; nothing uses the database until it is complete",
            hint=admin_command("restore --finish", database),
        )
