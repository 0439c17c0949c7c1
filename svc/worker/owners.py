"""Work that is left for agents, done in one thread for each owner: a silent agent holds up its owner's alone.

The rows of the database are the queue, so a new worker continues where the former one died.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from svc.worker import threads


class Row(Protocol):
    """What is to be done once."""

    @property
    def id(self) -> str:
        """Its name in the queue."""

    @property
    def owner_id(self) -> int:
        """The user whose agent does it."""


Work = TypeVar("Work", bound=Row)


class OwnerQueue(Generic[Work]):
    """What threads do now and when each row is tried again; OWNERS_AT_ONCE threads do something at a time.

    `due` gives the rows that are to be done, in order. `act` does one, and returns whether its owner's
    agent replied: without a reply, the owner's other rows wait too. Each is tried again after `again_s`
    seconds, for as long as it is due.
    """

    def __init__(self, due: Callable[[], list[Work]], act: Callable[[Work], bool], again_s: float) -> None:
        self.due, self.act, self.again_s = due, act, again_s
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(threads.OWNERS_AT_ONCE)
        self.busy: set[int] = set()  # owners
        self.not_before: dict[str, float] = {}

    def begin(self) -> None:
        """Start a thread for each owner of rows that are due; owners who have one are left out."""
        owners: dict[int, list[Work]] = {}
        with self.lock:
            rows = self.due()  # in the lock: what a thread has done before its owner was free is not in them
            self.not_before = {row.id: self.not_before.get(row.id, 0.0) for row in rows}
            for row in rows:
                if self.not_before[row.id] <= time.monotonic() and row.owner_id not in self.busy:
                    owners.setdefault(row.owner_id, []).append(row)
            self.busy |= owners.keys()
        for owner_id, own in owners.items():
            threads.start(self._act_on_all, owner_id, own)

    def _act_on_all(self, owner_id: int, rows: list[Work]) -> None:
        try:
            with self.slots:
                for number, row in enumerate(rows):
                    replied = self.act(row)
                    self._put_off([row] if replied else rows[number:])
                    if not replied:
                        break
        finally:
            with self.lock:
                self.busy.discard(owner_id)

    def _put_off(self, rows: list[Work]) -> None:
        with self.lock:
            self.not_before |= {row.id: time.monotonic() + self.again_s for row in rows}
