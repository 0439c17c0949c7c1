"""Keeping the database true to Podman: looks at one owner's containers and writes what differs.

Whoever wants a look asks for one; at most one runs for an owner at a time, and
a wish that comes while one runs is served by one more after it.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from svc.db.connect import close_database
from svc.domain import untrusted as answers
from svc.domain.workspaces import reconcile_rules
from svc.domain.workspaces.reconcile_rules import Row, Seen, Verdict
from svc.errors import NotFound, SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.settings import Settings

END_RETRIES = 20  # conmon writes the exit a moment after the process is gone
END_PAUSE_S = 0.1
CONTAINERS_MAX = 65_536  # of one user, in one answer
OWNERS_AT_ONCE = 4  # at the first look, at a boot: an agent that does not answer delays few


def rfc3339(seconds: float) -> str:
    """A time of the clock as the rows write it."""
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def booted_at() -> str:
    """When this host started: its first process did, which is right in a system container too."""
    with open("/proc/stat", encoding="ascii") as file:
        kernel = next(int(line.split()[1]) for line in file if line.startswith("btime "))
    with open("/proc/1/stat", encoding="ascii", errors="replace") as file:
        ticks = int(file.read().rpartition(")")[2].split()[19])  # starttime, proc(5)
    return rfc3339(kernel + ticks / os.sysconf("SC_CLK_TCK"))


class Reconciler:
    """Looks at owners' containers, each in a thread of its own.

    `server_started` is of CLOCK_BOOTTIME: ages outlast that somebody sets the clock, moments do not.
    """

    def __init__(self, settings: Settings, helper: Helper, server_started: float) -> None:
        self.settings = settings
        self.helper = helper
        self.booted_at = booted_at()
        self.server_started = server_started
        self.lock = threading.Lock()
        self.looking: set[int] = set()
        self.watching: set[int] = set()
        self.again: dict[int, tuple[str, str | None]] = {}

    def busy(self) -> bool:
        """Whether a look is under way."""
        return bool(self.looking)

    def everybody(self) -> None:
        """One look at every owner of a workspace, OWNERS_AT_ONCE at a time; returns when all are over."""
        owners: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()
        for owner in sorted({(row.owner_id, row.owner) for row in reconcile_rules.rows()}):
            owners.put(owner)
        threads = [threading.Thread(target=self._look_at_each, args=(owners,), daemon=True)
                   for _ in range(min(OWNERS_AT_ONCE, owners.qsize()))]  # fmt: skip
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def _look_at_each(self, owners: queue.SimpleQueue[tuple[int, str]]) -> None:
        try:
            with contextlib.suppress(queue.Empty):
                while True:
                    self._look(*owners.get_nowait(), None)
        finally:
            close_database()

    def look(self, owner_id: int, owner: str, *, after_end_of: str | None = None) -> None:
        """Have one owner's containers looked at soon, in a thread of their own."""
        with self.lock:
            if owner_id in self.looking:
                self.again[owner_id] = (owner, after_end_of)
                return
            self.looking.add(owner_id)
        threading.Thread(
            target=self._look_until_quiet, args=(owner_id, owner, after_end_of), daemon=True
        ).start()

    def _look_until_quiet(self, owner_id: int, owner: str, ended: str | None) -> None:
        try:
            while True:
                self._look(owner_id, owner, ended)
                with self.lock:
                    if owner_id not in self.again:
                        self.looking.discard(owner_id)
                        return
                    owner, ended = self.again.pop(owner_id)
        finally:
            self.looking.discard(owner_id)
            close_database()

    def _look(self, owner_id: int, owner: str, ended: str | None) -> None:
        """Rows first, then Podman: what a row has become since the look began is not judged by it.

        A start that ends between the two would else be taken for a run that has ended.
        """
        try:
            rows, seen = reconcile_rules.rows(owner_id), self._seen(owner)
            for _ in range(END_RETRIES if ended else 0):
                if ended not in seen or not seen[ended].running:
                    break
                time.sleep(END_PAUSE_S)
                rows, seen = reconcile_rules.rows(owner_id), self._seen(owner)
        except SvcError as error:
            why = f"{owner}'s containers could not be looked at: {error.message}"
            log("worker", why, "warning", code=error.code)
            return
        for row in rows:
            try:
                self._settle(row, seen.get(row.id))
            except SvcError as error:
                log("worker", f"{row.id} could not be settled: {error.message}", "warning", code=error.code)

    def _settle(self, row: Row, seen: Seen | None) -> None:
        verdict = reconcile_rules.judge(
            row,
            seen,
            orphan=row.age_s > time.clock_gettime(time.CLOCK_BOOTTIME) - self.server_started,
            rebooted=bool(row.started_at and row.started_at < self.booted_at),
        )
        if verdict is None:
            return
        if reconcile_rules.frees_gpus(row, verdict):
            self._end(row, verdict)
            return
        if verdict.status == "gone" and seen is not None:
            self.helper.call("ctr.remove", row.owner, {"id": row.id}, rid=f"reconcile-{row.id}")
        reconcile_rules.apply(row, verdict)

    def _end(self, row: Row, verdict: Verdict) -> None:
        """Have the container stopped, also one that was only about to run, and then give its GPUs up."""
        claimed = reconcile_rules.claim_end(row)
        if claimed is None:
            return
        try:
            self.helper.call("ctr.stop", row.owner, {"id": row.id, "grace_s": 0}, rid=f"reconcile-{row.id}")
        except NotFound:
            pass
        except SvcError:
            reconcile_rules.put_back(claimed, verdict.reason or "engine_error")
            raise
        reconcile_rules.apply(claimed, verdict)

    def _seen(self, owner: str) -> dict[str, Seen]:
        answer = self.helper.call("ctr.list", owner, {}, rid=f"reconcile-{owner}")
        untrusted = answers.get_rows(answer, "containers", CONTAINERS_MAX)
        return {answers.get_text(facts, "id", 64): _seen_of(facts) for facts in untrusted}

    def watch(self, rows: list[Row], found: Callable[[int, Row], None]) -> None:
        """Have one owner's running workspaces watched, in a thread: a silent agent delays nobody else.

        `found` gets a pidfd of each one's first process; if one does not run, the owner is looked at.
        """
        owner_id = rows[0].owner_id
        with self.lock:
            if owner_id in self.watching:
                return
            self.watching.add(owner_id)
        threading.Thread(target=self._watch, args=(owner_id, rows, found), daemon=True).start()

    def _watch(self, owner_id: int, rows: list[Row], found: Callable[[int, Row], None]) -> None:
        try:
            for row in rows:
                _, pidfd = self.helper.call_fd("ctr.watch", row.owner, {"id": row.id}, rid=f"watch-{row.id}")
                found(pidfd, row)
        except (SvcError, OSError) as error:  # OSError: no descriptor to be had
            log("worker", f"{row.id} is not watched: {error}", "warning")
            self.look(owner_id, row.owner)
        finally:
            with self.lock:
                self.watching.discard(owner_id)


def _seen_of(facts: Mapping[str, Any]) -> Seen:
    return Seen(
        running=facts.get("status") == "running",
        exit_code=answers.find_number(facts, "exit_code"),
        oom_killed=facts.get("oom_killed") is True,
    )
