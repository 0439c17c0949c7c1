"""Upkeep of the database, by the worker alone: checkpoints, checks, its disk's reserve, what is forgotten.

A fault of the disk is logged once, noted as the database's condition and tried again;
the worker goes on. Nothing is written back over a database that failed its check.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
import time
from urllib.parse import quote

import peewee

from svc.db import check, condition, faults, reserve
from svc.db.connect import database, raise_fault
from svc.domain import events, retention
from svc.errors import StorageFailed, SvcError
from svc.host.ids import now
from svc.log import log
from svc.worker import threads

CHECKPOINT_S = 30.0
CHECKPOINT_BYTES = 4 * 1024 * 1024  # of log: more than this is not left to the period; SQLite's own default
GROWING_BYTES = CHECKPOINT_BYTES // 4  # of log: from here on it is looked at each second
HEAD_S = 1.0  # between two looks at the audit's newest row
EMPTYING_MS = 200  # that emptying the log may wait for readers, and with it every writer
CHECK_S = 15 * 60.0  # at least, between two checks of the database
CHECK_SHARE = 50  # a check may take one part in so many of the time
CHECK_MAX_S = 300.0  # a larger database is left to the doctor
CHECK_NICE = 10  # it reads all of the database, while the listeners answer
LOGGED_S = 60.0  # between two log lines on one fault
FORGET_S = 24 * 3600.0  # between two removals of what ended long ago
EXPIRING_S, FIRST_EXPIRING_S = 3600.0, 60.0  # between two searches for tokens that expire soon, and at first
FIRST_FORGET_S = 600.0  # after a start, when the first check is over


class Upkeep:
    """When each part is due, and the faults that were logged."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.log_path = f"{path}-wal"
        self.checkpointed_at = -CHECKPOINT_S  # at once: a worker that dies often must not put it off
        self.head_at = 0.0
        self.head: check.Head | None = None
        self.file: tuple[int, int, int] | None = None  # as this process has left it
        self.filed: check.Head | None = None  # the newest row then in the file, without its log
        self.check_at = 0.0
        self.check: threading.Thread | None = None
        self.forget_at = time.monotonic() + FIRST_FORGET_S
        self.expiring_at = time.monotonic() + FIRST_EXPIRING_S
        self.logged: dict[str, float] = {}  # by code

    def begin(self) -> None:
        """Do what is due; the check in a thread."""
        if reserve.is_full(self.path):
            self.note(faults.full())
        if reserve.make(self.path):
            log("worker", "the reserve on the database's disk is there", bytes=reserve.SIZE)
        self.watch_file()
        if self._is_check_due():
            self.check = threads.start(self._check, nice=CHECK_NICE)
        if self.is_log_due():
            self.checkpoint()
        self.note_head()
        if time.monotonic() >= self.forget_at:
            self.forget()
        if time.monotonic() >= self.expiring_at and condition.find_damage(self.path) is None:
            self.expiring_at = time.monotonic() + EXPIRING_S
            events.note_expiring()

    def forget(self) -> None:
        """Remove what ended long ago."""
        self.forget_at = time.monotonic() + FORGET_S
        if condition.find_damage(self.path) is None and (counts := retention.forget_ended()):
            removed = ", ".join(f"{count} {kind}" for kind, count in counts.items())
            log("worker", f"what ended long ago is removed: {removed}")

    # --- checkpoints ----------------------------------------------------------------------

    def is_log_due(self) -> bool:
        """Whether the period is over or the log is large; at most once a second, as a reader may hold it."""
        age = time.monotonic() - self.checkpointed_at
        return age >= CHECKPOINT_S or (age > 1.0 and self._log_bytes() > CHECKPOINT_BYTES)

    def wait_s(self) -> float:
        """Seconds until the log is to be looked at again."""
        return 1.0 if self._log_bytes() > GROWING_BYTES else CHECKPOINT_S

    def _log_bytes(self) -> int:
        try:
            return os.stat(self.log_path).st_size
        except OSError:
            return 0

    def checkpoint(self) -> None:
        """Write the log back into the database file; raises StorageFull, StorageFailed."""
        self.checkpointed_at = time.monotonic()
        if condition.find_damage(self.path) is not None:
            return
        with reserve.entitled():
            reserve.require_room(self.path)
        # Passive first: writers go on meanwhile. Emptying the log holds the write lock until nobody reads an
        # older state, and a check or a backup of 2 GB reads for half a minute: then a later round does it.
        newest, self.filed = check.newest(database.connection()), None
        try:
            _, pages, copied = database.execute_sql("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if pages == copied:
                self.filed = newest
                with database.waiting(EMPTYING_MS):
                    database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        finally:
            self.file = _identity(self.path)
        reserve.probe(self.path)  # the log may have been empty
        if condition.clear(self.path, StorageFailed.code):
            log("worker", "the database's disk works again")

    # --- losses ------------------------------------------------------------------------------

    def note_head(self) -> None:
        """Write the audit's newest row down, by which the next start knows what a damaged log has lost."""
        if time.monotonic() < self.head_at or condition.find_damage(self.path) is not None:
            return
        self.head_at = time.monotonic() + HEAD_S
        newest = check.newest(database.connection())
        if newest != self.head:
            with contextlib.suppress(OSError):  # a full disk: the head before is right too
                check.write_head(self.path, newest)
                self.head = newest

    def watch_file(self) -> None:
        """Notice that another program has written to the file, as only this process does, or replaced it."""
        found = _identity(self.path)
        if self.file is None or found == self.file or condition.find_damage(self.path) is not None:
            self.file = self.file or found
            return
        before, self.file, self.check_at = self.file, found, 0.0
        if found is None or found[0] != before[0]:
            self.note(faults.damaged(f"{self.path} is not the file that the service has open"))
        elif self.filed is not None and not _file_has(self.path, self.filed):
            with contextlib.suppress(OSError):  # the condition says it until the next start
                check.write_head(self.path, (self.head or self.filed)._replace(overwritten_at=now()))
            self.note(faults.damaged("another program has written over its file while the service ran"))
        else:
            log("worker", "another program has written to the database's file; it is checked", "warning")

    # --- checks -----------------------------------------------------------------------------

    def _is_check_due(self) -> bool:
        if self.check is not None and self.check.is_alive():
            return False
        return time.monotonic() >= self.check_at

    def _check(self) -> None:
        began = time.monotonic()
        was_damaged = condition.find_damage(self.path) is not None
        self.check_at = float("inf")
        try:
            wrong = check.update_condition(database.connection(), self.path, CHECK_MAX_S, indexes=True)
        except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
            wrong = faults.error_of(error) or SvcError(f"the database could not be checked: {error}")
        took_s = time.monotonic() - began
        self.check_at = time.monotonic() + max(CHECK_S, CHECK_SHARE * took_s)
        if wrong is not None:
            self.note(wrong)
        elif took_s >= CHECK_MAX_S:
            log("worker", "the database is too large to be checked; run svc admin doctor", "warning")
        elif was_damaged:
            log("worker", "the database is no longer damaged and is written to again", "warning")

    # --- faults -----------------------------------------------------------------------------

    def note(self, error: BaseException) -> None:
        """Log a fault, at most once in LOGGED_S; raises what is none of the disk or of another process."""
        try:
            raise_fault(error, busy=True)
        except SvcError as fault:
            error = fault
        if not isinstance(error, SvcError):
            raise error
        condition.note(self.path, error)
        if time.monotonic() >= self.logged.get(error.code, 0.0):
            self.logged[error.code] = time.monotonic() + LOGGED_S
            log("worker", error.message, "error", code=error.code, hint=error.hint)


def _identity(path: str) -> tuple[int, int, int] | None:
    """Which file is at the path and when its content changed; None where there is none."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _file_has(path: str, head: check.Head) -> bool:
    """Whether the file alone, without its log, has a row of the audit; True after a complete checkpoint."""
    try:
        with contextlib.closing(sqlite3.connect(f"file:{quote(path)}?immutable=1", uri=True)) as connection:
            return check.has(connection, head)
    except sqlite3.DatabaseError:
        return False
