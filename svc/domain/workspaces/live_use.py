"""What all running workspaces of a user use now, and the states of their launchers: one request for a list.

A list of workspaces comes from the database alone and asks no agent; this asks the caller's own agent, once
for all who look within KEPT_S. Where nobody looks nothing is measured. An agent that does not reply is
waited for once; then what it would have said is null. CPU time is a counter, so its use is known from
the second measurement of a run on. Records:

    {id, at, cpu_percent (of one core), memory_bytes, gpu_percent, gpu_memory_bytes,
     launchers: [{name, state, exit_code}]}
"""

from __future__ import annotations

import threading
import time
from typing import Any, NamedTuple

from svc.db.connect import database
from svc.domain import pages, untrusted
from svc.domain.principal import Caller
from svc.domain.workspaces import launchers, monitor, states
from svc.domain.workspaces.states import Workspace
from svc.errors import SvcError
from svc.host.ids import now

KEPT_S = 2.0  # several tabs, and those that ask again and again, share a measurement
ASKING_S = 5.0  # then the rest of a list is null
CALL_S = 3  # of one workspace
BETWEEN_S = 0.2  # of a CPU counter, at least: the kernel counts in ticks
RUNS_MAX = 4096  # counters that are remembered


class Counter(NamedTuple):
    """The CPU time of a run at one moment."""

    at: float
    cpu_usec: int


class Kept(NamedTuple):
    """A user's last measurement."""

    at: float
    items: list[dict[str, Any]]


class Measurements:
    """The last measurements of this process, one at a time of each user."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.measuring: dict[int, threading.Lock] = {}
        self.kept: dict[int, Kept] = {}
        self.counters: dict[tuple[str, str | None], Counter] = {}

    def of(self, caller: Caller) -> list[dict[str, Any]]:
        """The user's measurement, at most KEPT_S old; an older one while the next takes longer than that."""
        with self.lock:
            turn = self.measuring.setdefault(caller.user_id, threading.Lock())
        if not turn.acquire(timeout=KEPT_S):
            return self.kept.get(caller.user_id, Kept(0.0, [])).items
        try:
            kept = self.kept.get(caller.user_id)
            if kept is None or time.monotonic() - kept.at >= KEPT_S:
                items = self._measure(caller)
                kept = self.kept[caller.user_id] = Kept(time.monotonic(), items)
            return kept.items
        finally:
            turn.release()

    def _measure(self, caller: Caller) -> list[dict[str, Any]]:
        until, items = time.monotonic() + ASKING_S, []
        replying = True
        for workspace in _running(caller):
            item: dict[str, Any] = {
                "id": workspace.id, "at": now(), "cpu_percent": None, "memory_bytes": None,
                "gpu_percent": None, "gpu_memory_bytes": None, "launchers": [],
            }  # fmt: skip
            items.append(item)
            try:
                if replying and time.monotonic() < until:
                    item |= self._use(caller, workspace) | _gpus(workspace)
                    item["launchers"] = launchers.states_of(caller, workspace)
            except SvcError as error:  # NotFound, not running: it has ended, which the reconciler notices
                replying = not isinstance(error, untrusted.SILENT)
        return items

    def _use(self, caller: Caller, workspace: Workspace) -> dict[str, Any]:
        reply = caller.ask("ctr.stats", {"id": workspace.id, "sample_ms": 0}, timeout_s=CALL_S)
        counter = Counter(time.monotonic(), untrusted.get_count(reply, "cpu_usec"))
        key = (workspace.id, workspace.started_at)
        with self.lock:
            before = self.counters.pop(key, None)
            if before is None or counter.at - before.at >= BETWEEN_S:
                self.counters[key] = counter
            else:
                self.counters[key] = before
            while len(self.counters) > RUNS_MAX:
                del self.counters[next(iter(self.counters))]
        return {
            "cpu_percent": _percent(before, counter),
            "memory_bytes": untrusted.get_count(reply, "memory_bytes"),
        }


def _percent(before: Counter | None, counter: Counter) -> float | None:
    """The use of one core between two counters; None for the first, and after a counter that went back."""
    if before is None or counter.at - before.at < BETWEEN_S or counter.cpu_usec < before.cpu_usec:
        return None
    return round((counter.cpu_usec - before.cpu_usec) / (counter.at - before.at) / 10_000, 1)


def _running(caller: Caller) -> list[Workspace]:
    ids = database.execute_sql(
        "SELECT id FROM workspaces WHERE owner_id = ? AND status = 'running' ORDER BY created_at, id",
        (caller.user_id,),
    ).fetchall()
    return [found for (id_,) in ids if (found := states.of_id(id_)) is not None]


def _gpus(workspace: Workspace) -> dict[str, Any]:
    """The busiest of its GPUs, and the memory that its processes use on all of them."""
    found = monitor.gpus(workspace)
    busy = [gpu["utilization_percent"] for gpu in found if gpu["utilization_percent"] is not None]
    return {
        "gpu_percent": max(busy, default=None),
        "gpu_memory_bytes": sum(gpu["used_bytes"] for gpu in found) if found else None,
    }


measurements = Measurements()


def listing(caller: Caller) -> dict[str, Any]:
    """What each of the caller's running workspaces uses now: {items}."""
    return pages.whole(measurements.of(caller))
