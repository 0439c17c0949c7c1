"""Live monitors: one sampler for each workspace, whoever watches it.

Every MONITOR_PERIOD_S an agent is asked once, as the first of those who watch, and all get the sample. One
whose client has not read the last sample yet does not get this one.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from svc.domain.principal import Caller
from svc.domain.workspaces import monitor
from svc.errors import (
    EngineTimeout,
    EngineUnavailable,
    NotFound,
    SvcError,
    TooManyRequests,
    WorkspaceNotRunning,
)
from svc.limits import MONITOR_PERIOD_S
from svc.web.streaming.sse import EventStream, event

FAILURES_MAX = 5  # in a row, before a stream ends with the error
SAMPLES_PER_USER = 2  # at once: an agent that does not answer must not take the threads from others
TRANSIENT = (EngineUnavailable, EngineTimeout, TooManyRequests)

_samplers: dict[tuple[int, str], Sampler] = {}
_asking: Counter[int] = Counter()  # by user; used in the loop's thread, as all here


class Sampler:
    """The samples of one workspace, for its owner's streams."""

    def __init__(self, key: tuple[int, str]) -> None:
        self.key = key
        self.watchers: dict[Monitor, None] = {}
        self.is_active = False  # it asks, or will: until nobody watches, or the workspace ends
        self.failures = 0
        self.last = b""  # not older than a period or so

    def add(self, watcher: Monitor) -> None:
        """Give a stream the samples from now on, and the last one at once."""
        self.watchers[watcher] = None
        if self.is_active and self.last:
            watcher.send(self.last)
        elif not self.is_active:
            self.is_active = True
            self.ask()

    def ask(self) -> None:
        """Ask for a sample, as the first who watches; without any the sampler ends."""
        watcher = next(iter(self.watchers), None)
        if watcher is None:
            _samplers.pop(self.key, None)
            return
        user_id, workspace_id = self.key
        if _asking[user_id] >= SAMPLES_PER_USER:
            watcher.loop.later(MONITOR_PERIOD_S / 2, self.ask)
            return
        _asking[user_id] += 1
        began, loop = time.monotonic(), watcher.loop

        def take(result: Any) -> None:
            _asking[user_id] -= 1
            if self._take(result):
                loop.later(max(0.0, began + MONITOR_PERIOD_S - time.monotonic()), self.ask)

        loop.ask_agent(lambda: monitor.snapshot(watcher.caller, workspace_id), take)

    def _take(self, result: Any) -> bool:
        """Send the sample on; whether there will be another."""
        if isinstance(result, Exception):
            return self._fail(result)
        self.failures, self.last = 0, event("sample", result)
        for watcher in list(self.watchers):
            if not watcher.output:
                watcher.send(self.last)
        return True

    def _fail(self, error: Exception) -> bool:
        self.failures += 1
        if isinstance(error, TRANSIENT) and self.failures < FAILURES_MAX:
            return True
        _samplers.pop(self.key, None)
        for watcher in list(self.watchers):
            if isinstance(error, WorkspaceNotRunning | NotFound):
                watcher.finish()
            else:
                watcher.fail(error if isinstance(error, SvcError) else SvcError("internal error"))
        return False


class Monitor(EventStream):
    """One who watches a workspace of the caller."""

    def __init__(self, caller: Caller, require: Callable[[], object], rid: str, workspace_id: str) -> None:
        super().__init__(caller, require, rid)
        self.key = (caller.user_id, workspace_id)
        self.sampler: Sampler | None = None

    def opened(self) -> None:
        """Join the workspace's sampler, or begin it."""
        if self.key not in _samplers:
            _samplers[self.key] = Sampler(self.key)
        self.sampler = _samplers[self.key]
        self.sampler.add(self)

    def closed(self) -> None:
        """Leave it; the last one ends it, before its next sample."""
        if self.sampler is not None:
            self.sampler.watchers.pop(self, None)
