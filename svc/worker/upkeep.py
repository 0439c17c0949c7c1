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

import peewee

from svc.db import check, condition, faults, reserve
from svc.db.connect import database, raise_fault
from svc.domain import events, retention
from svc.errors import StorageFailed, SvcError
from svc.log import log
from svc.worker import threads

CHECKPOINT_S = 30.0
CHECKPOINT_BYTES = 64 * 1024 * 1024  # of log: more than this is not left to the period, bundles are large
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
        self.checkpointed_at = time.monotonic()
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
        if self._is_check_due():
            self.check = threads.start(self._check, nice=CHECK_NICE)
        if self.is_log_due():
            self.checkpoint()
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
        if 1.0 < age < CHECKPOINT_S:
            with contextlib.suppress(OSError):
                return os.stat(self.log_path).st_size > CHECKPOINT_BYTES
        return age >= CHECKPOINT_S

    def checkpoint(self) -> None:
        """Write the log back into the database file; raises StorageFull, StorageFailed."""
        self.checkpointed_at = time.monotonic()
        if condition.find_damage(self.path) is not None:
            return
        with reserve.entitled():
            reserve.require_room(self.path)
        # Passive first: writers go on meanwhile. Emptying the log holds the write lock until nobody reads an
        # older state, and a check or a backup of 2 GB reads for half a minute: then a later round does it.
        _, pages, copied = database.execute_sql("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        if pages == copied:
            with database.waiting(EMPTYING_MS):
                database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        reserve.probe(self.path)  # the log may have been empty
        if condition.clear(self.path, StorageFailed.code):
            log("worker", "the database's disk works again")

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
