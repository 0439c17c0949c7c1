"""The worker process: runs queued operations, watches running workspaces, checkpoints the database.

One thread polls the listeners' wake-up event, the pidfds of running workspaces and
the clock. Operations and inspections run in threads of their own, so that a slow
user never delays another. No other process checkpoints the database.
"""

from __future__ import annotations

import contextlib
import os
import queue
import select
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from types import FrameType

import peewee

from svc.db import acting, faults, secret_check
from svc.db.connect import database, open_database
from svc.domain import configuration, operations
from svc.domain.audit import audit
from svc.domain.workspaces import reconcile_rules
from svc.errors import SvcError
from svc.helper.helper import Helper
from svc.host.secret import read_secret
from svc.log import log
from svc.settings import Settings
from svc.worker import threads
from svc.worker.boots import Boots
from svc.worker.build_secrets import SecretWatch
from svc.worker.disk import DiskWatch
from svc.worker.gpus import GpuWatch
from svc.worker.idle import PERIOD_S as IDLE_S
from svc.worker.idle import IdleWatch
from svc.worker.launchers import LauncherWatch
from svc.worker.licence import LicenceWatch
from svc.worker.reconciler import Reconciler
from svc.worker.runs import Runner
from svc.worker.stopped import StoppedWatch
from svc.worker.upkeep import Upkeep

RECONCILE_S = 3.0  # while a row is unresolved
ORPHANS_S = 5.0  # between looks for work of processes that are gone; a new listener wakes the worker besides
# A host that shuts down ends containers and svc at once: any other reason in the row would be wrong, and the
# workspace would not be started again. A second later the worker itself is gone, or it was no shutdown.
ENDED_S = 1.0
WATCH_S = 30.0  # between attempts to watch running workspaces that are not watched


class Loop:
    """The polling thread and what it starts."""

    def __init__(self, settings: Settings, helper: Helper, event: int) -> None:
        self.event = event
        self.stopping = False
        self.poller = select.poll()
        self.poller.register(event, select.POLLIN)
        self.watches: dict[int, reconcile_rules.Row] = {}  # by pidfd
        self.new_watches: queue.SimpleQueue[tuple[int, reconcile_rules.Row]] = queue.SimpleQueue()
        self.reconciler = Reconciler(helper)
        self.launchers = LauncherWatch(helper, self.poller, self.wake)
        self.runner = Runner(helper, self.wake)
        self.boots = Boots(helper)
        self.idle = IdleWatch(helper)
        self.gpus = GpuWatch()
        self.disk = DiskWatch(helper)
        self.secrets = SecretWatch(helper)
        self.stopped = StoppedWatch(helper)
        self.licence = LicenceWatch()
        self.upkeep = Upkeep(settings.db)
        self.wait_s = RECONCILE_S
        self.recovered = False  # what an earlier worker left running
        self.watch_at = 0.0
        self.idle_at = 0.0

    def wake(self) -> None:
        """Make the next poll return at once."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self.event, 1)

    def run(self) -> None:
        """Run until SIGTERM."""
        threads.start(self._inspect_all)
        steps = (
            self.upkeep.begin,
            self._dispatch,
            self._take_new_watches,
            audit.end_interrupted,
            self._reconcile,
            self._check_idle,
            self.gpus.begin,
            self.licence.begin,
            self.disk.begin,
            self.secrets.begin,
            self.stopped.begin,
        )
        while not self.stopping:
            self.wait_s = RECONCILE_S
            failed = [step for step in steps if not self._survive(step)]
            if not failed:
                self._survive(self._decide_wait)
            wait_s = min(self.wait_s, self.upkeep.wait_s())
            for fd, _ in self.poller.poll(int(1000 * wait_s)):
                if fd == self.event:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self.event)
                    self.watch_at = 0.0
                elif not self.launchers.take_end(fd):
                    self._container_ended(fd)

    def _survive(self, step: Callable[[], object]) -> bool:
        """Take one step; a fault of the database's disk is logged, and the next round tries again."""
        try:
            step()
        except (SvcError, peewee.DatabaseError, sqlite3.DatabaseError) as error:
            self.upkeep.note(error)
            return False
        return True

    def _dispatch(self) -> None:
        """Start queued operations; first those that an earlier worker left running."""
        if not self.recovered:
            operations.recover()
            self.recovered = True
        self.runner.dispatch()

    def _decide_wait(self) -> None:
        if not self.reconciler.inspecting and not reconcile_rules.unresolved(min_age_s=0):
            self.wait_s = ORPHANS_S

    def _inspect_all(self) -> None:
        self.reconciler.inspect_all()
        self.watch_at = 0.0
        self.wake()

    def _reconcile(self) -> None:
        """Resolve old transitions, and watch running workspaces that are not watched."""
        for row in reconcile_rules.unresolved():
            self.reconciler.inspect(row.owner_id, row.owner)
        if time.monotonic() < self.watch_at:
            return
        self.watch_at = time.monotonic() + WATCH_S
        self.boots.begin()
        self._watch_running()
        self.launchers.begin()

    def _watch_running(self) -> None:
        active = reconcile_rules.active()
        self._drop_all_but({row.id for row in active})
        watched = {row.id for row in self.watches.values()}
        owners: dict[int, list[reconcile_rules.Row]] = {}
        for row in active:
            if row.status == "running" and row.id not in watched:
                owners.setdefault(row.owner_id, []).append(row)
        for rows in owners.values():
            self.reconciler.watch(rows, self._add_watch)

    def _drop_all_but(self, active: set[str]) -> None:
        """Close what waits for containers of stopped or deleted workspaces.

        A descriptor is an agent's word: that of a process which never ends would stay open for ever.
        """
        for fd in [fd for fd, row in self.watches.items() if row.id not in active]:
            self._unwatch(fd)

    def _unwatch(self, pidfd: int) -> reconcile_rules.Row:
        self.poller.unregister(pidfd)
        os.close(pidfd)
        return self.watches.pop(pidfd)

    def _check_idle(self) -> None:
        if time.monotonic() >= self.idle_at:
            self.idle_at = time.monotonic() + IDLE_S
            self.idle.begin()

    def _add_watch(self, pidfd: int, row: reconcile_rules.Row) -> None:
        """Pass a pidfd from another thread to the polling thread."""
        self.new_watches.put((pidfd, row))
        self.wake()

    def _take_new_watches(self) -> None:
        watched = {row.id for row in self.watches.values()}
        while not self.new_watches.empty():
            pidfd, row = self.new_watches.get()
            if row.id in watched:
                os.close(pidfd)
                continue
            watched.add(row.id)
            self.watches[pidfd] = row
            self.poller.register(pidfd, select.POLLIN)

    def _container_ended(self, pidfd: int) -> None:
        row = self._unwatch(pidfd)
        options = {"after_end_of": row.id}
        timer = threading.Timer(ENDED_S, self.reconciler.inspect, (row.owner_id, row.owner), options)
        timer.daemon = True
        timer.start()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: running operations are not waited for, the next start queues them again."""
        self.stopping = True
        self.wake()


def _signing_secret(settings: Settings) -> bytes:
    """The signing secret; the log says when it is not the database's own."""
    secret, own = read_secret(settings.secret_file), True
    with contextlib.suppress(SvcError, peewee.DatabaseError):  # a database that cannot be written, or read
        own = secret_check.ensure(secret)
    if not own:
        log("worker", secret_check.sentence(settings.secret_file), "error", hint=faults.DOCTOR)
    return secret


def run(settings: Settings, helper: Helper, event: int) -> None:
    """Run the worker until SIGTERM; `event` is the eventfd with which the listeners wake it."""
    open_database(settings.db)
    database.notes_faults = True
    configuration.configure(settings, _signing_secret(settings))
    acting.by_default(audit.VIA["worker"])
    loop = Loop(settings, helper, event)
    operations.wake = loop.wake
    signal.signal(signal.SIGTERM, loop.stop)
    signal.signal(signal.SIGINT, loop.stop)
    log("worker", "started")
    loop.run()
    os._exit(0)  # does not wait for the threads of operations; the next start resumes those
