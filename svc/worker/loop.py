"""The worker process: runs what is queued, watches what runs, checkpoints the database.

One thread polls: the listeners' wake-up, the pidfds of running workspaces, the
clock. Operations and looks at Podman happen in threads of their own, so that a
slow user never delays another. It is the database's only checkpointer.
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

from svc.db.connect import close_database, database, open_database
from svc.db.secret import read_secret
from svc.domain import configuration, operations
from svc.domain.workspaces import leases, reconcile_rules
from svc.helper.helper import Helper
from svc.log import log
from svc.settings import Settings
from svc.worker.boots import Boots
from svc.worker.gpus import LOOK_S as GPUS_S
from svc.worker.gpus import GpuWatch
from svc.worker.idle import LOOK_S as IDLE_LOOK_S
from svc.worker.idle import IdleWatch
from svc.worker.reconciler import Reconciler
from svc.worker.runs import Runner

CHECKPOINT_S = 30.0
CHECKPOINT_BYTES = 64 * 1024 * 1024  # of log, after which it is not waited for: bundles come faster than that
LOOK_S = 3.0  # between looks while something is unsettled
# A host that goes down ends containers and svc at once: a row that said why would say the wrong thing, and
# the workspace would not be started again. A second later the worker itself is gone, or it was no shutdown.
ENDED_S = 1.0
WATCH_S = 30.0  # between attempts to watch what runs unwatched


class Loop:
    """The polling thread and what it sets off."""

    def __init__(self, settings: Settings, helper: Helper, event: int, server_started: float) -> None:
        self.event = event
        self.stopping = False
        self.poller = select.poll()
        self.poller.register(event, select.POLLIN)
        self.watches: dict[int, reconcile_rules.Row] = {}  # by pidfd
        self.found: queue.SimpleQueue[tuple[int, reconcile_rules.Row]] = queue.SimpleQueue()
        self.reconciler = Reconciler(settings, helper, server_started)
        self.runner = Runner(settings, helper, self.wake)
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
        """Until SIGTERM."""
        operations.recover()
        threading.Thread(target=self._first_look, daemon=True).start()
        while not self.stopping:
            self.runner.dispatch()
            self._take_found()
            self._look()
            self._look_for_idle()
            self.gpus.begin()
            for descriptor, _ in self.poller.poll(self._patience_ms()):
                if descriptor == self.event:
                    with contextlib.suppress(BlockingIOError):
                        os.eventfd_read(self.event)
                    self.watch_at = 0.0
                else:
                    self._container_ended(descriptor)
            if self._is_log_due():
                self._checkpoint()

    def _patience_ms(self) -> int:
        unsettled = self.reconciler.busy() or reconcile_rules.unsettled_soon()
        at_rest = GPUS_S if leases.any_held() else CHECKPOINT_S
        return int(1000 * (LOOK_S if unsettled else at_rest))

    def _first_look(self) -> None:
        self.reconciler.everybody()
        close_database()
        self.watch_at = 0.0
        self.wake()

    def _look(self) -> None:
        """Settle old transitions and watch what runs unwatched."""
        for row in reconcile_rules.unsettled():
            self.reconciler.look(row.owner_id, row.owner)
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
            self.reconciler.watch(rows, self._found)

    def _look_for_idle(self) -> None:
        if time.monotonic() >= self.idle_at:
            self.idle_at = time.monotonic() + IDLE_LOOK_S
            self.idle.begin()

    def _found(self, pidfd: int, row: reconcile_rules.Row) -> None:
        """From a thread: hand a pidfd over to the polling one."""
        self.found.put((pidfd, row))
        self.wake()

    def _take_found(self) -> None:
        watched = {row.id for row in self.watches.values()}
        while not self.found.empty():
            pidfd, row = self.found.get()
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
        look = threading.Timer(
            ENDED_S, self.reconciler.look, (row.owner_id, row.owner), {"after_end_of": row.id}
        )
        look.daemon = True
        look.start()

    def _is_log_due(self) -> bool:
        """Now and then; at once when it is large, but not again and again while somebody still reads it."""
        age = time.monotonic() - self.checkpointed_at
        if 1.0 < age < CHECKPOINT_S:
            with contextlib.suppress(FileNotFoundError):
                return os.stat(self.log_path).st_size > CHECKPOINT_BYTES
        return age >= CHECKPOINT_S

    def _checkpoint(self) -> None:
        """Fold the log into the file; the only place where that happens while the server runs."""
        self.checkpointed_at = time.monotonic()
        database.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def stop(self, _number: int, _frame: FrameType | None) -> None:
        """SIGTERM: what runs is queued again at the next start, so nothing is waited for."""
        self.stopping = True
        self.wake()


def run(settings: Settings, helper: Helper, event: int, server_started: float) -> None:
    """The worker's life, until SIGTERM. `event` is the eventfd by which the listeners wake it."""
    open_database(settings.db)
    configuration.configure(settings, read_secret(settings.secret_file))
    loop = Loop(settings, helper, event, server_started)
    operations.wake = loop.wake
    signal.signal(signal.SIGTERM, loop.stop)
    signal.signal(signal.SIGINT, loop.stop)
    log("worker", "started")
    loop.run()
    os._exit(0)  # threads of running operations are not waited for; their rows are resumed
