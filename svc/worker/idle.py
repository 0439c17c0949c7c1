"""Looking for workspaces in which nothing happens, once a minute, where a template asks for it.

One agent that does not answer delays its own user's looks only. What cannot be
measured counts as activity: nothing is stopped that nobody has looked into.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import groupby

from svc.db.connect import close_database
from svc.db.ids import now
from svc.domain import untrusted
from svc.domain.accounts import users
from svc.domain.workspaces import idle, workspaces
from svc.domain.workspaces.idle import Use, Watched
from svc.errors import EngineFailed, SvcError
from svc.helper.helper import Helper
from svc.log import log

LOOK_S = 60.0
OWNERS_AT_ONCE = 4
PORTS_SEEN_MAX = 1000  # of an answer that should have PORTS_PER_WORKSPACE


class IdleWatch:
    """What the last looks counted, and the looks.

    `clock` measures between looks in seconds, `time_of_day` is what rows have.
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
        self.places = threading.BoundedSemaphore(OWNERS_AT_ONCE)
        self.looking: set[int] = set()  # owners
        self.before: dict[tuple[str, str], Use] = {}  # by workspace and the time of its start
        self.told: set[tuple[str, str]] = set()  # by workspace and since when it is idle

    def begin(self) -> None:
        """Look at everybody's, each owner's in a thread of its own; who is still being looked at is left."""
        idle.forget_ended()
        rows = idle.watched()
        with self.lock:
            running = {(row.id, row.status_since) for row in rows}
            self.before = {key: use for key, use in self.before.items() if key in running}
            self.told &= {(row.id, row.idle_since or "") for row in rows}
        for owner_id, own in groupby(rows, key=lambda row: row.owner_id):
            with self.lock:
                if owner_id in self.looking:
                    continue
                self.looking.add(owner_id)
            threading.Thread(target=self._look_at_owner, args=(owner_id, list(own)), daemon=True).start()

    def _look_at_owner(self, owner_id: int, rows: list[Watched]) -> None:
        try:
            with self.places:
                self.look(rows)
        finally:
            with self.lock:
                self.looking.discard(owner_id)
            close_database()

    def look(self, rows: list[Watched]) -> None:
        """Look at one owner's, in this thread; after an answer that never came not at the rest.

        Nor once it has taken a whole turn: others wait for its place.
        """
        answering = True
        until = self.clock() + LOOK_S
        for row in rows:
            quiet = False
            try:
                if answering and self.clock() < until:
                    quiet = self._is_quiet(row)
            except SvcError as error:
                answering = isinstance(error, EngineFailed)
                log("worker", f"{row.id} could not be measured: {error.message}", "warning", code=error.code)
            try:
                self._act(row, idle.judge(row, quiet=quiet, at=self.time_of_day()))
            except SvcError as error:
                log("worker", f"{row.id} is idle and goes on: {error.message}", "warning", code=error.code)

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
            answer = self.helper.call("port.list", row.owner, {"id": row.id}, rid=rid)
            for port in untrusted.get_rows(answer, "ports", PORTS_SEEN_MAX):
                forwarded += untrusted.get_number(port, "bytes")
                connections += untrusted.get_number(port, "connections")
        return Use(self.clock(), untrusted.get_number(stats, "cpu_usec"), forwarded, connections)

    def _act(self, row: Watched, due: str | None) -> None:
        since = (row.id, row.idle_since or "")
        if due == idle.NOTIFY and since not in self.told:
            self.told.add(since)
            idle.notify(row)
        if due == idle.STOP:
            present = idle.present(row)  # somebody may have come while it was measured
            if present is not None and idle.is_due(present, self.time_of_day()):
                idle.notify(present)
                caller = users.acting_for(row.owner_id, self.helper, f"idle-{row.id}")
                workspaces.stop(caller, row.id, reason="idle_policy", since=present.status_since)
                log("worker", "an idle workspace was stopped", workspace=row.id, user=row.owner)
