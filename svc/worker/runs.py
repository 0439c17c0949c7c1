"""Running one operation: a pull, or a set-up (pull what is missing, then create).

Each runs in a thread of its own, at most OPERATIONS_MAX at once and two for one
owner. A run may be repeated after a restart, so every step finds what a former
one left: the agent's pull waits for a predecessor, a set-up finds its workspace.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from svc.db.connect import close_database
from svc.domain import images, operations, users, workspaces
from svc.domain.callers import Caller
from svc.errors import EngineUnavailable, SvcError
from svc.helper import Helper
from svc.log import log
from svc.settings import Settings

OPERATIONS_MAX = 32  # a user whose pulls never end holds PER_OWNER of them
PER_OWNER = 2
REPORT_S = 0.25  # between two progress writes
UNAVAILABLE_RETRIES = 5


class Runner:
    """Takes queued operations and runs them in threads."""

    def __init__(self, settings: Settings, helper: Helper, wake: Callable[[], None]) -> None:
        self.settings = settings
        self.helper = helper
        self.wake = wake
        self.lock = threading.Lock()
        self.owners: Counter[int] = Counter()

    def dispatch(self) -> None:
        """Start what is queued and has room."""
        while self.owners.total() < OPERATIONS_MAX:
            with self.lock:
                taken = operations.claim(dict(self.owners), PER_OWNER)
                if taken is None:
                    return
                self.owners[taken["owner_id"]] += 1
            threading.Thread(target=self._run, args=(taken,), daemon=True).start()

    def _run(self, taken: dict[str, Any]) -> None:
        try:
            operations.succeed(taken["id"], self._attempts(taken))
        except SvcError as error:
            operations.say(taken["id"], error.message)
            operations.fail(taken["id"], error, taken["request_id"])
        except Exception as error:  # noqa: BLE001  the thread's edge: no operation may stay "running" for ever
            log("worker", "an operation failed", "error", operation=taken["id"], why=repr(error))
            unforeseen = SvcError("something went wrong here; the log has it under the operation's id")
            operations.fail(taken["id"], unforeseen, taken["request_id"])
        finally:
            with self.lock:
                self.owners[taken["owner_id"]] -= 1
            close_database()
            self.wake()

    def _attempts(self, taken: dict[str, Any]) -> dict[str, Any]:
        """The run, repeated while only the way to Podman is broken."""
        for attempt in range(UNAVAILABLE_RETRIES):
            try:
                return self._once(taken)
            except EngineUnavailable as error:
                if attempt + 1 == UNAVAILABLE_RETRIES or operations.cancel_requested(taken["id"]):
                    raise
                operations.say(taken["id"], f"{error.message}; trying again")
                time.sleep(2**attempt * 0.5)
        raise AssertionError("unreachable")

    def _once(self, taken: dict[str, Any]) -> dict[str, Any]:
        caller = users.acting_for(taken["owner_id"], self.helper, taken["request_id"])
        report = Reporter(taken["id"])
        if taken["kind"] == "pull":
            return images.fetch(caller, taken["request"]["image_ref"], report.progress, report.cancelled)
        return self._setup(caller, taken, report)

    def _setup(self, caller: Caller, taken: dict[str, Any], report: Reporter) -> dict[str, Any]:
        """`ws setup`: "Downloads or builds a missing image and creates the workspace as one operation"."""
        request = taken["request"]
        if not images.present(caller, request["image_ref"]):
            images.fetch(caller, request["image_ref"], report.progress, report.cancelled)
        report.phase("creating")
        record = workspaces.create(caller, request["workspace"], workspace_id=taken["subject_id"])
        return {"workspace_id": record["id"], "name": record["name"]}


class Reporter:
    """Writes an operation's progress, not more often than somebody could read it."""

    def __init__(self, operation_id: str) -> None:
        self.operation_id = operation_id
        self.next_at = 0.0
        self.last_text = ""

    def phase(self, name: str) -> None:
        """Enter a phase without figures."""
        operations.report(self.operation_id, name, {})
        operations.say(self.operation_id, name)

    def progress(self, progress: dict[str, Any]) -> None:
        """Note {current, total, unit, text} from the agent, every part checked: it belongs to its user."""
        figures = {key: progress[key] for key in ("current", "total") if type(progress.get(key)) is int}
        words = {key: progress[key][:200] for key in ("unit", "text") if type(progress.get(key)) is str}
        if words.get("text", self.last_text) != self.last_text:
            self.last_text = words["text"]
            operations.say(self.operation_id, self.last_text)
        elif time.monotonic() < self.next_at:
            return
        self.next_at = time.monotonic() + REPORT_S
        operations.report(self.operation_id, "pulling", figures | words)

    def cancelled(self) -> bool:
        """Whether the owner asked for the end."""
        return operations.cancel_requested(self.operation_id)
