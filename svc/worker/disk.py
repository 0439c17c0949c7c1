"""Measure users' disk usage on an administrator's request: by the users' agents, a few at a time.

An agent that was started for a measurement ends with it, so that an overview of two hundred users
never needs more than AT_ONCE of them. The rows are the queue: a new worker continues where the former
one died.
"""

from __future__ import annotations

import threading
import time

import peewee

from svc.domain.accounts import disk_usage
from svc.domain.accounts.disk_usage import Waiting
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads
from svc_helper.wire.limits import DISK_USAGE_S

AT_ONCE = 2
AGAIN_S = 300.0  # for one whose result could not be kept: a full disk would have it counted without end


class DiskWatch:
    """The users whom the threads are measuring."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.lock = threading.Lock()
        self.measuring: set[int] = set()
        self.not_before: dict[int, float] = {}

    def begin(self) -> None:
        """Start a measurement if there is room; its thread continues with the next one."""
        if len(self.measuring) < AT_ONCE and (found := self._next()):
            threads.start(self._measure, found)

    def _next(self) -> Waiting | None:
        with self.lock:
            if len(self.measuring) >= AT_ONCE:
                return None
            found = next((row for row in disk_usage.waiting() if self._is_due(row)), None)
            if found:
                self.measuring.add(found.user_id)
            return found

    def _is_due(self, row: Waiting) -> bool:
        not_before = self.not_before.get(row.user_id, 0.0)
        return row.user_id not in self.measuring and not_before <= time.monotonic()

    def _measure(self, row: Waiting | None) -> None:
        while row:
            try:
                self._measure_one(row)
            finally:
                with self.lock:
                    self.measuring.discard(row.user_id)
            row = self._next()

    def _measure_one(self, row: Waiting) -> None:
        self.not_before[row.user_id] = time.monotonic() + AGAIN_S
        try:
            reply = self.helper.call(
                "disk.usage", row.name, {"seconds": DISK_USAGE_S}, rid=f"disk-{row.user_id}"
            )
            disk_usage.keep(row.user_id, reply)
        except (SvcError, peewee.DatabaseError) as error:
            log("worker", f"the disks of {row.name} could not be measured: {error}", "warning")
            if not self._note_failure(row, error):
                return
        del self.not_before[row.user_id]

    def _note_failure(self, row: Waiting, error: Exception) -> bool:
        """Whether the failure could be written; else the row waits as before."""
        if not isinstance(error, SvcError):
            return False
        try:
            disk_usage.fail(row.user_id, error)
        except (SvcError, peewee.DatabaseError):
            return False
        return True
