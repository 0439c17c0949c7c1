"""SQLite's errors that are faults of the disk or the file, as errors of ours.

SQLite's result codes decide, not its messages. peewee wraps its errors, and a failed
rollback hides the first one, so the whole chain of contexts is looked at.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

from svc.errors import DatabaseDamaged, Maintenance, StorageFailed, StorageFull, SvcError

# Errors of a write that a reading request survives: it is left to the next one.
UNWRITABLE = (StorageFull, StorageFailed, DatabaseDamaged, Maintenance)
PRIMARY = 0xFF  # of a result code; the rest says which operation failed
DOCTOR = "sudo svc admin doctor"
RESTORE = "stop the service, then: sudo svc admin restore PATH   (of the newest snapshot)"  # docs/database.md


def error_of(error: BaseException, *, busy: bool = False) -> SvcError | None:
    """StorageFull, StorageFailed or DatabaseDamaged, with `busy` also Maintenance; None for other errors."""
    for found in _sqlite_errors(error):
        code = found.sqlite_errorcode
        if code & PRIMARY == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE:
            return full()
        if code & PRIMARY in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN):
            return failed(f"{found} ({found.sqlite_errorname})")
        if code & PRIMARY in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
            return damaged(str(found))
        if busy and code & PRIMARY in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            return busy_now()
    return None


def busy_now() -> SvcError:
    """The error when other writers took the whole time."""
    return Maintenance("the database is busy; try again", retry_after_s=5)


def full() -> SvcError:
    """The error for a full disk."""
    return StorageFull(
        "the disk that holds the database is full; stopping and deleting workspaces still work", hint=DOCTOR
    )


def failed(reason: str) -> SvcError:
    """The error for a disk that does not read or write."""
    return StorageFailed(f"the disk that holds the database fails: {reason}", hint=DOCTOR, retry_after_s=5)


def damaged(reason: str) -> SvcError:
    """The error for a database that is damaged."""
    return DatabaseDamaged(f"the database is damaged, and nothing is written to it: {reason}", hint=DOCTOR)


def _sqlite_errors(error: BaseException | None) -> Iterator[sqlite3.Error]:
    """The errors of SQLite among the error and its contexts; of Python's own module there is no code."""
    while error is not None:
        for one in (error, *error.args[:1]):  # peewee's errors have SQLite's as their first argument
            if isinstance(one, sqlite3.Error) and hasattr(one, "sqlite_errorcode"):
                yield one
        error = error.__context__
