"""Wait for the end of each running launcher, and record an event for one that ends by itself.

The worker knows from the events which launchers run. Its loop polls a pidfd of each, which the owner's
agent provides. Neither agent, shim nor Podman is polled, so a running launcher costs nothing.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Callable

from svc.domain.principal import Caller
from svc.domain.workspaces import launchers
from svc.domain.workspaces.launchers import Run
from svc.errors import EngineTimeout, SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads

ENDED_S = 1.0  # by then the end of the workspace, or a requested stop, is recorded
END_RETRIES, END_PAUSE_S = 20, 0.1  # the shim reaps a moment after the process is gone
RETRY_S = 30.0  # for a launcher whose watch failed and whose end was not found
RUNS_MAX = 4096  # descriptors; the service's limit is many times that
NO_UID = -1  # the caller is used only for helper calls, which name the user


class LauncherWatch:
    """Waits for the ends of launchers; a thread for each owner requests the pidfds."""

    def __init__(self, helper: Helper, poller: select.poll, wake: Callable[[], None]) -> None:
        self.helper, self.poller, self.wake = helper, poller, wake
        self.watches: dict[int, Run] = {}  # by pidfd
        self.new: queue.SimpleQueue[tuple[int, Run]] = queue.SimpleQueue()
        self.tried: dict[int, float] = {}  # time of the last attempt, by the event of the start
        self.owners: set[int] = set()  # owners whose agents are being asked
        self.lock = threading.Lock()
        self.slots = threading.BoundedSemaphore(threads.OWNERS_AT_ONCE)

    def begin(self) -> None:
        """Watch launchers that were started since the last call; called from the polling thread."""
        self._take_new()
        runs = launchers.started_runs()
        self._drop_all_but({run.event_id for run in runs})
        watched = {run.event_id for run in self.watches.values()}
        self.tried = {run.event_id: self.tried[run.event_id] for run in runs if run.event_id in self.tried}
        now, owners = time.monotonic(), dict[int, list[Run]]()
        for run in runs[:RUNS_MAX]:
            if run.event_id not in watched and now - self.tried.get(run.event_id, -RETRY_S) >= RETRY_S:
                owners.setdefault(run.owner_id, []).append(run)
        for owner_id, found in owners.items():
            with self.lock:
                if owner_id in self.owners:
                    continue
                self.owners.add(owner_id)
            self.tried |= {run.event_id: now for run in found}
            threads.start(self._watch, owner_id, found)

    def take_end(self, fd: int) -> bool:
        """Handle a readable descriptor; returns whether it was one of a launcher."""
        run = self.watches.pop(fd, None)
        if run is None:
            return False
        self.poller.unregister(fd)
        os.close(fd)
        self.tried[run.event_id] = time.monotonic()  # begin() leaves it to the thread
        threads.start(self._ended, run)
        return True

    def _drop_all_but(self, started: set[int]) -> None:
        """Close what waits for launchers that have been stopped, or their workspaces.

        A descriptor is an agent's word: that of a process which never ends would stay open for ever, and
        each start of a launcher adds one.
        """
        for fd in [fd for fd, run in self.watches.items() if run.event_id not in started]:
            del self.watches[fd]
            self.poller.unregister(fd)
            os.close(fd)

    def _take_new(self) -> None:
        watched = {run.event_id for run in self.watches.values()}
        while not self.new.empty():
            fd, run = self.new.get()
            if run.event_id in watched:
                os.close(fd)
                continue
            watched.add(run.event_id)
            self.watches[fd] = run
            self.poller.register(fd, select.POLLIN)

    def _watch(self, owner_id: int, runs: list[Run]) -> None:
        try:
            with self.slots:
                self._ask(runs)
        finally:
            with self.lock:
                self.owners.discard(owner_id)
            self.wake()

    def _ask(self, runs: list[Run]) -> None:
        for run in runs:
            arguments, rid = {"id": run.workspace_id, "name": run.name}, f"watch-{run.workspace_id}"
            try:
                _, fd = self.helper.call_fd("launcher.watch_end", run.owner, arguments, rid=rid)
                self.new.put((fd, run))
            except EngineTimeout:
                return  # other owners wait for the slot; a later round asks again
            except (SvcError, OSError):  # OSError: no descriptor was available
                self._note(run)  # most likely it has ended already

    def _ended(self, run: Run) -> None:
        time.sleep(ENDED_S)
        for _ in range(END_RETRIES):
            if self._note(run):
                return
            time.sleep(END_PAUSE_S)

    def _note(self, run: Run) -> bool:
        rid = f"launcher-{run.workspace_id}"
        caller = Caller("worker", run.owner_id, run.owner, NO_UID, False, rid, "", self.helper)
        try:
            return launchers.note_end(caller, run)
        except SvcError as error:
            facts = {"workspace": run.workspace_id, "launcher": run.name, "code": error.code}
            log("worker", "the end of a launcher could not be noted", "warning", **facts)
            return True  # the next round tries again
