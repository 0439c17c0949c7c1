"""What is wrong with the database's file or its disk, known to every process: `<db>.condition`.

Damage stops all writing: SQLite would write over pages that failed their check, and
what could still be saved from them would be lost. The file outlives a restart; it goes
when a whole check finds no damage. A disk that fails may not take the file either: then
the process keeps in memory what it has seen itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from typing import NamedTuple

from svc.db.faults import DOCTOR
from svc.errors import DatabaseDamaged, StorageFailed, SvcError, by_code
from svc.host.ids import now
from svc.host.sharing import mode_beside
from svc_helper import atomic_file

REASON_MAX = 500
READ_MAX = 4096
REMEMBERED_S = 60.0  # what could not be written to the file; a lasting fault is seen again


class Condition(NamedTuple):
    """A code of svc.errors, the error's message, and when it was found."""

    code: str
    reason: str
    at: str

    @property
    def error(self) -> SvcError:
        """The condition as an error."""
        return by_code(self.code)(self.reason, hint=DOCTOR)


_seen: dict[str, tuple[Condition, float]] = {}  # by code: what this process has seen, until when


def path_of(database: str) -> str:
    """The path of the file."""
    return f"{database}.condition"


def find(database: str) -> Condition | None:
    """What is wrong; None when nothing is. Damage comes before a failing disk."""
    found = [_read(path_of(database)), *(one for one, until in _seen.values() if time.monotonic() < until)]
    wrong = [one for one in found if one is not None]
    return min(wrong, key=lambda one: one.code != DatabaseDamaged.code, default=None)


def find_damage(database: str) -> Condition | None:
    """The condition in which nothing may be written; one lstat where all is well."""
    if not _seen and not os.path.lexists(path_of(database)):
        return None
    found = find(database)
    return found if found is not None and found.code == DatabaseDamaged.code else None


def note(database: str, error: SvcError) -> bool:
    """Let every process know of a damaged database or a failing disk; True when that is news."""
    if error.code not in (DatabaseDamaged.code, StorageFailed.code):
        return False
    before = find(database)
    if before is not None and before.code in (error.code, DatabaseDamaged.code):
        return False
    found = Condition(error.code, error.message[:REASON_MAX], now())
    try:
        atomic_file.replace(path_of(database), json.dumps(found._asdict()).encode(), mode_beside(database))
    except OSError:
        _seen[found.code] = (found, time.monotonic() + REMEMBERED_S)
    return True


def clear(database: str, code: str) -> bool:
    """Forget a condition that a check has found to be over; True when there was one."""
    was = _seen.pop(code, None) is not None
    found = _read(path_of(database))
    if found is not None and found.code == code:
        with contextlib.suppress(OSError):
            os.unlink(path_of(database))
            return True
    return was


def _read(path: str) -> Condition | None:
    """The file's content; what cannot be read counts as damage, as it stands there for a reason."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        return Condition(StorageFailed.code, f"{path} cannot be read: {error.strerror}", now())
    with open(descriptor, "rb") as file:
        try:
            values = json.loads(file.read(READ_MAX))
            return Condition(str(values["code"]), str(values["reason"]), str(values["at"]))
        except OSError as error:
            return Condition(StorageFailed.code, f"{path} cannot be read: {error.strerror}", now())
        except (ValueError, KeyError, TypeError):
            return Condition(DatabaseDamaged.code, f"{path} cannot be understood", now())
