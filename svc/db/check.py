"""SQLite's own check of the whole database, bounded in time, as a condition of it.

It finds pages that are no pages of a B-tree, cells that lead outside, pages that are in
use twice, and with the entries of indexes also most changes of what is indexed; not
a changed letter in another text (the audit's own chain finds those of its rows). It reads
every page: 2.3 seconds a gigabyte from memory, with the indexes 6, and ten times that from a disk.
Then the schema is compared with that of its number, and the audit's newest row with the one that the
worker wrote down last: SQLite takes a log that was cut or removed for one that ends there.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from typing import NamedTuple

from svc.db import condition, faults, migrate
from svc.db.connect import database, open_database
from svc.errors import DatabaseDamaged, DatabaseRefused, StorageFailed, SvcError
from svc.host.sharing import mode_beside
from svc_helper import atomic_file

AT_START_S = 2.0  # of a check before the listeners serve; the worker's own goes on longer
AGAIN_S = 0.01  # until the next interrupt of a check whose time is over
HEAD_SUFFIX = ".head"
HEAD_MAX = 4096  # bytes of that file


class Head(NamedTuple):
    """The audit's newest row that the worker has seen, and when it saw the file overwritten, or empty."""

    id: int
    hash: str
    overwritten_at: str = ""


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


def fault_of(
    connection: sqlite3.Connection, path: str, within_s: float, *, indexes: bool = False
) -> str | None:
    """The first fault of the file, its schema or its newest rows, empty for none; None as in first_fault."""
    fault = first_fault(connection, within_s, indexes=indexes)
    return fault or migrate.difference(connection) or loss(connection, path) or fault


def update_condition(
    connection: sqlite3.Connection, path: str, within_s: float, *, indexes: bool = False
) -> SvcError | None:
    """Check, and note or clear the condition of the database; returns what is wrong, or None.

    A check that time has ended changes nothing.
    """
    try:
        fault = fault_of(connection, path, within_s, indexes=indexes)
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


# --- the audit's newest row --------------------------------------------------------------


def newest(connection: sqlite3.Connection) -> Head:
    """The audit's newest row, or id 0."""
    row = connection.execute("SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    return Head(*row) if row else Head(0, "")


def has(connection: sqlite3.Connection, head: Head) -> bool:
    """Whether a row of the audit is there, or was moved to an archive."""
    row = connection.execute("SELECT hash FROM audit WHERE id = ?", (head.id,)).fetchone()
    if row is not None or not head.id:
        return row is None or bool(row[0] == head.hash)
    moved = connection.execute("SELECT id FROM audit_archived").fetchone()
    return moved is not None and bool(moved[0] >= head.id)


def head_path(path: str) -> str:
    """The file of the head."""
    return f"{path}{HEAD_SUFFIX}"


def read_head(path: str) -> Head | None:
    """The head that was written down last; None without one that can be understood, or of another file.

    A database that has taken the place of another by a rename, as a restore and a rollback of any release
    do, begins anew: the inode tells.
    """
    try:
        descriptor = os.open(head_path(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:
            values = json.loads(file.read(HEAD_MAX))
        if values.pop("inode") != os.stat(path).st_ino:
            return None
        found = Head(**values)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return found if [type(value) for value in found] == [int, str, str] else None


def write_head(path: str, head: Head) -> None:
    """Write a committed row down; a power cut may leave the one before. Raises OSError."""
    content = json.dumps({**head._asdict(), "inode": os.stat(path).st_ino}).encode()
    atomic_file.replace(head_path(path), content, mode_beside(path), durable=False)


def loss(connection: sqlite3.Connection, path: str) -> str:
    """What is lost, by the head that was written down; empty for nothing."""
    head = read_head(path)
    if head is None:
        return ""
    if head.overwritten_at:
        return f"another program has written over its file while the service ran, at {head.overwritten_at}"
    if has(connection, head):
        return ""
    return (
        f"the newest changes are lost: the audit ends with row {newest(connection).id}, and had row {head.id}"
    )
