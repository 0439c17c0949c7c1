"""SQLite's own check of the whole database, bounded in time, as a condition of it.

It finds pages that are no pages of a B-tree, cells that lead outside, pages that are in
use twice, and with the entries of indexes also most changes of what is indexed; not
a changed letter in another text (the audit's own chain finds those of its rows). It reads
every page: 2.3 seconds a gigabyte from memory, with the indexes 6, and ten times that from a disk.
Then the schema is compared with that of its number.
"""

from __future__ import annotations

import sqlite3
import threading

from svc.db import condition, faults, migrate
from svc.db.connect import database, open_database
from svc.errors import DatabaseDamaged, DatabaseRefused, StorageFailed, SvcError

AT_START_S = 2.0  # of a check before the listeners serve; the worker's own goes on longer
AGAIN_S = 0.01  # until the next interrupt of a check whose time is over


def require_usable(path: str) -> None:
    """Raise DatabaseRefused, or StorageFailed, if no process of the service could use the database.

    A database that is only damaged can be used for reading: that becomes its condition.
    The process must end without closing the connection, which could write to a damaged file.
    """
    open_database(path)
    try:
        update_condition(database.connection(), path, AT_START_S)
    except sqlite3.DatabaseError as error:
        raise DatabaseRefused(f"{path} cannot be checked: {error}", hint=faults.DOCTOR) from None


def first_fault(connection: sqlite3.Connection, within_s: float, *, indexes: bool = False) -> str | None:
    """The first fault, empty when there is none; None when time was over first. Raises sqlite3.Error.

    With `indexes` their entries are compared with the rows.
    """
    pragma = "integrity_check" if indexes else "quick_check"
    over = threading.Event()

    def interrupt() -> None:
        wait_s = within_s
        while not over.wait(wait_s):
            connection.interrupt()
            wait_s = AGAIN_S  # one before the statement has begun would not end it

    clock = threading.Thread(target=interrupt, daemon=True)
    clock.start()
    try:
        report = str(connection.execute(f"PRAGMA {pragma}(1)").fetchone()[0])
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return None
        raise
    finally:
        over.set()
        clock.join()  # it must not interrupt what comes next
    return "" if report == "ok" else report.splitlines()[-1]  # below a title


def fault_of(connection: sqlite3.Connection, within_s: float, *, indexes: bool = False) -> str | None:
    """The first fault of the file, else of its schema, empty when there is none; None as in first_fault."""
    fault = first_fault(connection, within_s, indexes=indexes)
    return fault or migrate.difference(connection) or fault


def update_condition(
    connection: sqlite3.Connection, path: str, within_s: float, *, indexes: bool = False
) -> SvcError | None:
    """Check, and note or clear the condition of the database; returns what is wrong, or None.

    A check that time has ended changes nothing.
    """
    try:
        fault = fault_of(connection, within_s, indexes=indexes)
    except sqlite3.DatabaseError as error:
        found = faults.error_of(error)
        if found is None:
            raise
    else:
        if fault is None:
            return None
        found = faults.damaged(fault) if fault else None
    if found is None:
        condition.clear(path, DatabaseDamaged.code)
    else:
        condition.note(path, found)
    return found if isinstance(found, DatabaseDamaged | StorageFailed) else None
