"""Starts of workspaces with `restart_on_boot` after a reboot of the host, as their owners.

Each is tried once: afterwards it runs, or its row has the error's code instead of
`host_reboot`; it keeps that while its owner's engine cannot be reached. The rows are the
queue, so that a new worker continues where the former one died, also after one more
reboot, and an inspection that comes late adds to it.
"""

from __future__ import annotations

import threading
from collections import Counter

from svc.db.connect import database
from svc.domain.accounts import users
from svc.domain.workspaces import states, workspaces
from svc.domain.workspaces.reconcile_rules import REBOOT
from svc.errors import EngineUnavailable, SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads

AT_ONCE = 2  # the host is busy with the boot itself
TRIES = 4  # a user's own systemd may come up later than svc
RETRY_S = 2.0
REBOOTED = ("stopped", REBOOT)  # status and reason
UNREACHED = ("stopped", "engine_error")  # a start was not carried out; nothing is known to be wrong

# Stopped by a reboot and unchanged since: one that its owner has edited or stopped stays as it is. Which
# reboot it was does not matter: one that comes before a start, or during it, takes nothing back.
_DUE = (
    "SELECT w.id, w.owner_id FROM workspaces w JOIN users u ON u.id = w.owner_id"
    " WHERE w.restart_on_boot AND w.status = 'stopped' AND w.status_reason = 'host_reboot'"
    " AND w.updated_at = w.status_since AND u.uid IS NOT NULL"
    " ORDER BY w.started_at, w.id"
)


def due() -> list[tuple[str, int]]:
    """The workspaces that a reboot stopped and that are to run: (id, owner's id), longest running first."""
    return [(row[0], row[1]) for row in database.execute_sql(_DUE).fetchall()]


class Boots:
    """Starts the due workspaces, AT_ONCE at a time."""

    def __init__(self, helper: Helper, retry_s: float = RETRY_S) -> None:
        self.helper = helper
        self.retry_s = retry_s
        self.lock = threading.Lock()
        self.waiting: list[tuple[str, int]] = []
        self.taken: set[str] = set()
        self.threads = 0
        self.under_way: Counter[int] = Counter()  # by owner
        self.begun: Counter[int] = Counter()

    def begin(self) -> None:
        """Start in threads the due workspaces that were not taken before."""
        with self.lock:
            self.waiting += [(id_, owner) for id_, owner in due() if id_ not in self.taken]
            self.taken |= {id_ for id_, _ in self.waiting}
            for _ in range(min(AT_ONCE - self.threads, len(self.waiting))):
                self.threads += 1
                threads.start(self._run)

    def _run(self) -> None:
        try:
            while (taken := self._take()) is not None:
                try:
                    self.start(*taken)
                finally:
                    with self.lock:
                        self.under_way[taken[1]] -= 1
        finally:
            with self.lock:
                self.threads -= 1

    def _take(self) -> tuple[str, int] | None:
        """The next one, of the owner with the fewest under way: slow starts of one owner delay no others."""
        with self.lock:
            if not self.waiting:
                return None
            taken = min(self.waiting, key=lambda one: (self.under_way[one[1]], self.begun[one[1]]))
            self.waiting.remove(taken)
            self.under_way[taken[1]] += 1
            self.begun[taken[1]] += 1
            return taken

    def start(self, workspace_id: str, owner_id: int) -> None:
        """Start one as its owner; a failure is written to the log, the audit and the row."""
        try:
            caller = users.acting_for(owner_id, self.helper, f"boot-{workspace_id}")
            threads.retry_unavailable(
                lambda: workspaces.start(caller, workspace_id), TRIES, self.retry_s, lambda _: False
            )
        except SvcError as error:
            log("worker", f"{workspace_id} was not started: {error.message}", "warning", code=error.code)
            workspace = states.of_id(workspace_id)
            if workspace is None:
                return
            found = (workspace.status, workspace.status_reason)
            if isinstance(error, EngineUnavailable):
                if found == UNREACHED:
                    states.move(workspace, *REBOOTED)
            elif found == REBOOTED:
                states.move(workspace, "stopped", error.code)  # unless the row has another reason by now
        else:
            log("worker", "started again after the reboot", workspace=workspace_id)
