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
import threading
import time
from types import FrameType

from svc.db.connect import database, open_database
from svc.db.secret import read_secret
from svc.domain import configuration, operations
from svc.domain.workspaces import leases, reconcile_rules
from svc.helper.helper import Helper
from svc.log import log
from svc.settings import Settings
from svc.worker import threads
from svc.worker.boots import Boots
from svc.worker.gpus import PERIOD_S as GPUS_S
from svc.worker.gpus import GpuWatch
from svc.worker.idle import PERIOD_S as IDLE_S
from svc.worker.idle import IdleWatch
from svc.worker.reconciler import Reconciler
from svc.worker.runs import Runner

CHECKPOINT_S = 30.0
CHECKPOINT_BYTES = 64 * 1024 * 1024  # of log: more than this is not left to the period, bundles are large
RECONCILE_S = 3.0  # while a row is unresolved
# A host that shuts down ends containers and svc at once: any other reason in the row would be wrong, and the
# workspace would not be started again. A second later the worker itself is gone, or it was no shutdown.
ENDED_S = 1.0
WATCH_S = 30.0  # between attempts to watch running workspaces that are not watched


class Loop:
    """The polling thread and what it starts."""

    def __init__(self, settings: Settings, helper: Helper, event: int, server_started: float) -> None:
        self.event = event
        self.stopping = False
        self.poller = select.poll()
        self.poller.register(event, select.POLLIN)
        self.watches: dict[int, reconcile_rules.Row] = {}  # by pidfd
        self.new_watches: queue.SimpleQueue[tuple[int, reconcile_rules.Row]] = queue.SimpleQueue()
        self.reconciler = Reconciler(helper, server_started)
        self.runner = Runner(helper, self.wake)
        self.boots = Boots(helper, self.reconciler.booted_at)
        self.idle = IdleWatch(helper)
        self.gpus = GpuWatch()
        self.log_path = f"{settings.db}-wal"
        self.checkpointed_at = time.monotonic()
        self.watch_at = 0.0
        self.idle_at = 0.0

    def wake(self) -> None:
        """Make the next poll return at once."""
        with contextlib.suppress(BlockingIOError):
            os.eventfd_write(self.event, 1)

    def run(self) -> None:
        """Run until SIGTERM."""
        operations.recover()
        threads.start(self._inspect_all)
        while not self.stopping:
            self.runner.dispatch()
            self._take_new_watches()
            self._reconcile()
            self._check_idle()
            self.gpus.begin()
            for fd, _ in self.poller.poll(self._poll_timeout_ms()):
                if fd == self.event:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self.event)
                    self.watch_at = 0.0
                else:
                    self._container_ended(fd)
            if self._is_log_due():
                self._checkpoint()

    def _poll_timeout_ms(self) -> int:
        if self.reconciler.inspecting or reconcile_rules.unresolved(min_age_s=0):
            return int(1000 * RECONCILE_S)
        return int(1000 * (GPUS_S if leases.any_held() else CHECKPOINT_S))

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

    def _watch_running(self) -> None:
        watched = {row.id for row in self.watches.values()}
        owners: dict[int, list[reconcile_rules.Row]] = {}
        for row in reconcile_rules.running():
            if row.id not in watched:
                owners.setdefault(row.owner_id, []).append(row)
        for rows in owners.values():
            self.reconciler.watch(rows, self._add_watch)

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
        row = self.watches.pop(pidfd)
        self.poller.unregister(pidfd)
        os.close(pidfd)
        options = {"after_end_of": row.id}
        timer = threading.Timer(ENDED_S, self.reconciler.inspect, (row.owner_id, row.owner), options)
        timer.daemon = True
        timer.start()

    def _is_log_due(self) -> bool:
        """Whether the period is over or the log is large; at most once a second, as a reader may hold it."""
        age = time.monotonic() - self.checkpointed_at
        if 1.0 < age < CHECKPOINT_S:
            with contextlib.suppress(FileNotFoundError):
                return os.stat(self.log_path).st_size > CHECKPOINT_BYTES
        return age >= CHECKPOINT_S

    def _checkpoint(self) -> None:
        """Write the log back into the database file."""
        self.checkpointed_at = time.monotonic()
        database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """Handle SIGTERM: running operations are not waited for, the next start queues them again."""
        self.stopping = True
        self.wake()


def run(settings: Settings, helper: Helper, event: int, server_started: float) -> None:
    """Run the worker until SIGTERM; `event` is the eventfd with which the listeners wake it."""
    open_database(settings.db)
    configuration.configure(settings, read_secret(settings.secret_file))
    loop = Loop(settings, helper, event, server_started)
    operations.wake = loop.wake
    signal.signal(signal.SIGTERM, loop.stop)
    signal.signal(signal.SIGINT, loop.stop)
    log("worker", "started")
    loop.run()
    os._exit(0)  # does not wait for the threads of operations; the next start resumes those
