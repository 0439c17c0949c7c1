"""Periodic measurement of workspaces whose template has an idle policy; the rules are in domain idle.py.

An agent that does not reply delays its own user only. What cannot be measured
counts as activity: nothing is stopped unmeasured.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import groupby

from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.workspaces import idle, workspaces
from svc.domain.workspaces.idle import Use, Watched
from svc.errors import EngineFailed, SvcError
from svc.helper.helper import Helper
from svc.host.ids import now
from svc.log import log
from svc.worker import threads

PERIOD_S = 60.0
PORTS_SEEN_MAX = 1000  # rows of a reply that should have PORTS_PER_WORKSPACE


class IdleWatch:
    """The last measurement of each workspace, and who was notified.

    `clock` gives seconds for the intervals, `time_of_day` the text that rows have.
    """

    def __init__(
        self,
        helper: Helper,
        clock: Callable[[], float] = time.monotonic,
        time_of_day: Callable[[], str] = now,
    ) -> None:
        self.helper = helper
        self.clock = clock
        self.time_of_day = time_of_day
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(threads.OWNERS_AT_ONCE)
        self.measuring: set[int] = set()  # owners
        self.before: dict[tuple[str, str], Use] = {}  # by workspace and the time of its start
        self.notified: set[tuple[str, str]] = set()  # by workspace and idle_since

    def begin(self) -> None:
        """Measure everybody's, each owner's in a thread; owners still being measured are left out."""
        idle.forget_ended()
        rows = idle.watched()
        with self.lock:
            running = {(row.id, row.status_since) for row in rows}
            self.before = {key: use for key, use in self.before.items() if key in running}
            self.notified &= {(row.id, row.idle_since or "") for row in rows}
        for owner_id, own in groupby(rows, key=lambda row: row.owner_id):
            with self.lock:
                if owner_id in self.measuring:
                    continue
                self.measuring.add(owner_id)
            threads.start(self._measure_owner, owner_id, list(own))

    def _measure_owner(self, owner_id: int, rows: list[Watched]) -> None:
        try:
            with self.slots:
                self.measure(rows)
        finally:
            with self.lock:
                self.measuring.discard(owner_id)

    def measure(self, rows: list[Watched]) -> None:
        """Measure one owner's workspaces in this thread, and act on what is due.

        The rest counts as active after a call without a reply, and after a whole
        period: other owners wait for the slot.
        """
        replying = True
        until = self.clock() + PERIOD_S
        for row in rows:
            quiet = False
            try:
                if replying and self.clock() < until:
                    quiet = self._is_quiet(row)
            except SvcError as error:
                replying = isinstance(error, EngineFailed)
                log("worker", f"{row.id} could not be measured: {error.message}", "warning", code=error.code)
            try:
                self._act(row, idle.judge(row, quiet=quiet, at=self.time_of_day()))
            except SvcError as error:
                log(
                    "worker",
                    f"{row.id} is idle but was not stopped: {error.message}",
                    "warning",
                    code=error.code,
                )

    def _is_quiet(self, row: Watched) -> bool:
        key = (row.id, row.status_since)
        use = self._use(row)
        before = self.before.get(key)
        with self.lock:
            self.before[key] = use
        return idle.is_quiet(before, use) and idle.gpus_are_quiet(row)

    def _use(self, row: Watched) -> Use:
        rid = f"idle-{row.id}"
        stats = self.helper.call("ctr.stats", row.owner, {"id": row.id, "sample_ms": 0}, rid=rid)
        forwarded = connections = 0
        if row.has_ports:
            reply = self.helper.call("port.list", row.owner, {"id": row.id}, rid=rid)
            for port in untrusted.get_rows(reply, "ports", PORTS_SEEN_MAX):
                forwarded += untrusted.get_number(port, "bytes")
                connections += untrusted.get_number(port, "connections")
        return Use(self.clock(), untrusted.get_number(stats, "cpu_usec"), forwarded, connections)

    def _act(self, row: Watched, due: str | None) -> None:
        since = (row.id, row.idle_since or "")
        if due == idle.NOTIFY and since not in self.notified:
            self.notified.add(since)
            idle.notify(row)
        if due == idle.STOP:
            present = idle.present(row)  # its owner may have used it since it was measured
            if present is not None and idle.is_due(present, self.time_of_day()):
                idle.notify(present)
                caller = users.acting_for(row.owner_id, self.helper, f"idle-{row.id}")
                workspaces.stop(caller, row.id, reason="idle_policy", since=present.status_since)
                log("worker", "an idle workspace was stopped", workspace=row.id, user=row.owner)
