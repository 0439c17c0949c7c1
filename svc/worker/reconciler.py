"""The reconciler: lists an owner's containers and corrects the rows of that owner's workspaces.

At most one inspection runs for an owner at a time; a request that arrives during
one is served by one more after it.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from svc.domain import untrusted
from svc.domain.principal import Caller
from svc.domain.workspaces import reconcile_rules, transitions
from svc.domain.workspaces.reconcile_rules import Row, Seen
from svc.errors import AccountDisabled, SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads

END_RETRIES = 20  # conmon writes the exit a moment after the process is gone
END_PAUSE_S = 0.1
CONTAINERS_MAX = 65_536  # of one user, in one reply
NO_UID = -1  # of a caller that is used for helper calls only, which name the user


class Reconciler:
    """Inspects owners' containers, each owner's in its own thread: a silent agent delays no other."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.booted_at = reconcile_rules.booted_at()
        self.lock = threading.Lock()
        self.inspecting: set[int] = set()  # owners
        self.watching: set[int] = set()  # owners
        self.requests: dict[int, tuple[str, str | None]] = {}  # by owner: name, workspace that ended

    def inspect_all(self) -> None:
        """Inspect every owner of a workspace once, OWNERS_AT_ONCE at a time; returns when all are done.

        Two hundred owners of whom nothing runs never have more than so many agents, and Podmans of 45 MB.
        """
        owners = reconcile_rules.owners()
        shared = iter(owners)  # a list's iterator gives each of its items to one thread only
        for thread in [threads.start(self._inspect_each, shared) for _ in owners[: threads.OWNERS_AT_ONCE]]:
            thread.join()

    def _inspect_each(self, owners: Iterator[tuple[int, str]]) -> None:
        for owner_id, owner in owners:
            self._inspect(owner_id, owner, None, ends_agent=True)

    def inspect(self, owner_id: int, owner: str, *, after_end_of: str | None = None) -> None:
        """Have one owner's containers inspected soon, in a thread."""
        with self.lock:
            self.requests[owner_id] = (owner, after_end_of)
            if owner_id in self.inspecting:
                return
            self.inspecting.add(owner_id)
        threads.start(self._inspect_requested, owner_id)

    def _inspect_requested(self, owner_id: int) -> None:
        try:
            while request := self._take_request(owner_id):
                self._inspect(owner_id, *request)
        except BaseException:  # whatever it was: no thread is left for this owner
            self.inspecting.discard(owner_id)
            raise

    def _take_request(self, owner_id: int) -> tuple[str, str | None] | None:
        """The owner's next request; without one the inspection of this owner is over."""
        with self.lock:
            request = self.requests.pop(owner_id, None)
            if request is None:
                self.inspecting.discard(owner_id)
            return request

    def _inspect(self, owner_id: int, owner: str, ended: str | None, *, ends_agent: bool = False) -> None:
        """Read the rows before the list of containers, so that no row is judged by an older list.

        Otherwise a start that ends between the two would be taken for a run that has ended.
        """
        rows = reconcile_rules.rows(owner_id)
        try:
            seen = self._list(owner, ends_agent=ends_agent)
            for _ in range(END_RETRIES if ended else 0):
                if ended not in seen or not seen[ended].running:
                    break
                time.sleep(END_PAUSE_S)
                rows, seen = reconcile_rules.rows(owner_id), self._list(owner)
        except SvcError as error:
            message = f"the containers of {owner} could not be listed: {error.message}"
            log("worker", message, "warning", code=error.code)
            if isinstance(error, AccountDisabled):
                self._end_unseen(rows)
            return
        for row in rows:
            self._reconcile(row, seen.get(row.id), has_container=row.id in seen)

    def _end_unseen(self, rows: list[Row]) -> None:
        """End what nobody carries out any more for an account that has expired.

        Its containers cannot be listed, and a row that said "stopping" would refuse every other stop.
        """
        for row in rows:
            if row.orphan and row.status in ("starting", "stopping", "deleting"):
                self._reconcile(row, None, has_container=True)

    def _reconcile(self, row: Row, seen: Seen | None, *, has_container: bool) -> None:
        try:
            self._judge(row, seen, has_container=has_container)
        except SvcError as error:
            message = f"{row.id} could not be reconciled: {error.message}"
            log("worker", message, "warning", code=error.code)

    def _judge(self, row: Row, seen: Seen | None, *, has_container: bool) -> None:
        verdict = reconcile_rules.judge(
            row,
            seen,
            rebooted=reconcile_rules.is_before_boot(row, self.booted_at),
        )
        if verdict is not None:
            rid = f"reconcile-{row.id}"
            caller = Caller("worker", row.owner_id, row.owner, NO_UID, False, rid, "", self.helper)
            transitions.reconcile(caller, row, verdict, has_container=has_container)

    def _list(self, owner: str, *, ends_agent: bool = False) -> dict[str, Seen]:
        reply = self.helper.call("ctr.list", owner, {"ends_agent": ends_agent}, rid=f"reconcile-{owner}")
        return {
            container["id"]: Seen(
                running=container.get("status") == "running",
                exit_code=untrusted.find_number(container, "exit_code"),
                oom_killed=container.get("oom_killed") is True,
            )
            for container in untrusted.get_rows(reply, "containers", CONTAINERS_MAX)
            if type(container.get("id")) is str  # of any length: an id is also what a user has labelled
        }

    def watch(self, rows: list[Row], watched: Callable[[int, Row], None]) -> None:
        """Have one owner's running workspaces watched, in a thread.

        `watched` gets a pidfd of each one's first process; if one does not run, the owner is inspected.
        """
        owner_id = rows[0].owner_id
        with self.lock:
            if owner_id in self.watching:
                return
            self.watching.add(owner_id)
        threads.start(self._watch, owner_id, rows, watched)

    def _watch(self, owner_id: int, rows: list[Row], watched: Callable[[int, Row], None]) -> None:
        try:
            for row in rows:
                _, pidfd = self.helper.call_fd("ctr.watch", row.owner, {"id": row.id}, rid=f"watch-{row.id}")
                watched(pidfd, row)
        except (SvcError, OSError) as error:  # OSError: no descriptor to be had
            log("worker", f"{row.id} is not watched: {error}", "warning")
            self.inspect(owner_id, row.owner)
        finally:
            with self.lock:
                self.watching.discard(owner_id)
