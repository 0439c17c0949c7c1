"""Deletes stopped workspaces that were made with `delete_when_stopped`, as `svc ws run --rm` makes them.

Its client deletes them at once, with the exit code and the output in hand. One that was killed does not:
what has been stopped for DELETE_AFTER_S is deleted here. The rows are the queue, as for worker/boots.py.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

from svc.db.connect import database
from svc.db.ids import after, now
from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.workspaces import workspaces
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.limits import DELETE_AFTER_S
from svc.log import log
from svc.worker import threads

AGAIN_S = 60.0  # after one that could not be deleted

_DUE = (
    "SELECT w.id, w.owner_id, w.status_since FROM workspaces w JOIN users u ON u.id = w.owner_id"
    " WHERE w.delete_when_stopped = 1 AND w.status_since < ? AND w.status IN ('stopped', 'failed')"
    " AND u.uid IS NOT NULL AND u.disabled = 0 ORDER BY w.status_since"
)


class Due(NamedTuple):
    """A workspace that is to be deleted."""

    id: str
    owner_id: int
    since: str


def due(at: str) -> list[Due]:
    """The workspaces that are to be deleted at this time, the longest stopped first."""
    return [Due(*row) for row in database.execute_sql(_DUE, (after(at, -DELETE_AFTER_S),)).fetchall()]


class StoppedWatch:
    """Which of them threads delete, each owner's in one, and when to try again for those that failed."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(threads.OWNERS_AT_ONCE)
        self.deleting: set[int] = set()  # owners
        self.not_before: dict[str, float] = {}

    def begin(self) -> None:
        """Delete what is due, each owner's one after the other; owners for whom that goes on are left out."""
        owners: dict[int, list[Due]] = {}
        with self.lock:
            rows = due(now())
            self.not_before = {row.id: self.not_before.get(row.id, 0.0) for row in rows}
            for row in rows:
                if self.not_before[row.id] <= time.monotonic() and row.owner_id not in self.deleting:
                    owners.setdefault(row.owner_id, []).append(row)
            self.deleting |= owners.keys()
        for owner_id, own in owners.items():
            threads.start(self._delete_all, owner_id, own)

    def _delete_all(self, owner_id: int, rows: list[Due]) -> None:
        try:
            with self.slots:
                for number, row in enumerate(rows):
                    replied = self._delete(row)
                    self._put_off([row] if replied else rows[number:])
                    if not replied:
                        break
        finally:
            with self.lock:
                self.deleting.discard(owner_id)

    def _put_off(self, rows: list[Due]) -> None:
        with self.lock:
            self.not_before |= {row.id: time.monotonic() + AGAIN_S for row in rows}

    def _delete(self, row: Due) -> bool:
        """Delete one; False if its owner's agent does not reply: other owners wait for the slot."""
        try:
            caller = users.acting_for(row.owner_id, self.helper, f"stopped-{row.id}")
            workspaces.delete(caller, row.id, since=row.since)
        except SvcError as error:
            message = f"{row.id} was to be deleted when it has stopped: {error.message}"
            log("worker", message, "warning", code=error.code)
            return not isinstance(error, untrusted.SILENT)
        return True
