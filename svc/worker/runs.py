"""Runs operations: a pull, a build, or a set-up (pull or build what is missing, then create).

Each runs in its own thread, at most OPERATIONS_MAX at once and PER_OWNER for one owner.
A run may be repeated after a restart, so every step continues a former one: the
agent's pull or build waits for its predecessor, a set-up finds its workspace. An end
that a full disk or a busy database refuses is kept and written by a later round.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

from svc.actions import commands
from svc.db import acting, reserve
from svc.db.connect import write
from svc.db.faults import UNWRITABLE
from svc.domain import engine_hints, operations
from svc.domain.accounts import users
from svc.domain.audit import audit
from svc.domain.images import build_secrets, builds, images, mapping, pulls, usage
from svc.domain.images import records as image_records
from svc.domain.principal import Caller
from svc.domain.templates import rows as template_rows
from svc.domain.templates.rows import Template
from svc.domain.workspaces import workspaces
from svc.errors import BuildFailed, EngineFailed, EngineTimeout, NotFound, SvcError
from svc.helper.helper import Helper
from svc.log import log
from svc.worker import threads
from svc.worker.reporter import Reporter

OPERATIONS_MAX = 32
PER_OWNER = 2
CROWDED = OPERATIONS_MAX // 2  # from this number on each owner has one, so that others find a slot
TRIES, RETRY_S = 5, 0.5  # while the engine is unavailable
DOWNLOAD_FAILED = (NotFound, EngineFailed, EngineTimeout)  # of a recipe that can be built instead


class Runner:
    """Takes queued operations and runs them in threads."""

    def __init__(self, helper: Helper, wake: Callable[[], None]) -> None:
        self.helper = helper
        self.wake = wake
        self.lock = threading.Lock()
        self.owners: Counter[int] = Counter()
        self.unwritten: deque[tuple[str, Callable[[], None]]] = deque()  # ends, and for whom they are written

    def dispatch(self) -> None:
        """Write the ends that could not be written, then start queued operations while there are slots."""
        self._write_ends()
        while self.owners.total() < OPERATIONS_MAX:
            with self.lock:
                each = PER_OWNER if self.owners.total() < CROWDED else 1
                taken = operations.claim(dict(self.owners), each)
                if taken is None:
                    return
                self.owners[taken["owner_id"]] += 1
            threads.start(self._run, taken)

    def _run(self, taken: dict[str, Any]) -> None:
        acting.begin(taken["owner"], audit.VIA["worker"])
        try:
            self.unwritten.append((taken["owner"], self._run_to_end(taken)))
            self._write_ends()
        except UNWRITABLE as error:
            message = f"how an operation has ended is written later: {error.message}"
            log("worker", message, "warning", operation=taken["id"])
        finally:
            with self.lock:
                self.owners[taken["owner_id"]] -= 1
            self.wake()

    def _run_to_end(self, taken: dict[str, Any]) -> Callable[[], None]:
        """Run an operation; returns what writes how it has ended."""
        try:
            return partial(operations.succeed, taken["id"], self._attempts(taken))
        except SvcError as error:
            return partial(_fail, taken, error)
        except Exception as error:  # noqa: BLE001  the thread's entry point: no operation may stay "running" for ever
            log("worker", "an operation failed", "error", operation=taken["id"], why=repr(error))
            unforeseen = SvcError("internal error; the server's log has the cause under the operation's id")
            return partial(operations.fail, taken["id"], unforeseen, taken["request_id"])

    def _write_ends(self) -> None:
        """Write how operations have ended; raises one of UNWRITABLE, and the next round tries again.

        Without its end an operation would be "running", and refuse others of its subject, until the
        worker's next start.
        """
        while True:
            try:
                owner, write_end = ended = self.unwritten.popleft()
            except IndexError:
                return
            acting.begin(owner, audit.VIA["worker"])
            try:
                write_end()
            except UNWRITABLE:
                self.unwritten.appendleft(ended)
                raise
            finally:
                acting.end()

    def _attempts(self, taken: dict[str, Any]) -> dict[str, Any]:
        """Run an operation; retried while the engine is unavailable, unless it is cancelled."""

        def is_over(error: SvcError) -> bool:
            if operations.cancel_requested(taken["id"]):
                return True
            operations.add_log(taken["id"], f"{error.message}; trying again")
            return False

        return threads.retry_unavailable(lambda: self._once(taken), TRIES, RETRY_S, is_over)

    def _once(self, taken: dict[str, Any]) -> dict[str, Any]:
        caller = users.acting_for(taken["owner_id"], self.helper, taken["request_id"])
        report = Reporter(taken["id"])
        try:
            result = RUNS[taken["kind"]](caller, taken, report)
            usage.read_again(caller)
            return result
        finally:
            report.close()


def _fail(taken: dict[str, Any], error: SvcError) -> None:
    """Finish a failed operation; the error is also the last line of its log."""
    engine_hints.complete(error, **_names(taken))
    if isinstance(error, BuildFailed):
        error.hint = commands.operation_log(taken["id"])
    with reserve.entitled(), write():  # both or neither: a line may have no room where an end still has
        operations.add_log(taken["id"], error.message)
        operations.fail(taken["id"], error, taken["request_id"])


def _names(taken: dict[str, Any]) -> dict[str, str]:
    """What the hint of a failed operation may name."""
    template_id = taken["request"].get("template_id")
    verb = "build" if taken["kind"] == "build" else "pull"
    if not template_id:
        return {"user": taken["owner"]}
    template = template_rows.reference(taken["owner_id"], template_id)
    return {"user": taken["owner"], "template": template, "verb": verb}


def _pull(caller: Caller, taken: dict[str, Any], report: Reporter) -> dict[str, Any]:
    request = taken["request"]
    result = pulls.run(caller, request["image_ref"], report)
    return result | {"warnings": image_records.warnings(caller, request["image_ref"], request["template_id"])}


def _build(caller: Caller, taken: dict[str, Any], report: Reporter) -> dict[str, Any]:
    template = _template(caller, taken)
    request = taken["request"]
    secrets = build_secrets.arguments(taken["id"], request)
    result = builds.run(caller, template, report, request.get("build_args"), secrets)
    return result | {"warnings": image_records.warnings(caller, template.image_ref, template.id)}


def _setup(caller: Caller, taken: dict[str, Any], report: Reporter) -> dict[str, Any]:
    """`ws setup`: "Downloads or builds a missing image and creates the workspace as one operation"."""
    request = taken["request"]
    template = _template(caller, taken)
    if not images.present(caller, request["image_ref"]):
        _provide(caller, template, report)
    mapping.ensure(caller, request["image_ref"], template.spec["run_as"], report)
    report.phase("creating")
    record = workspaces.create(
        caller, request["workspace"], workspace_id=taken["subject_id"], revision=request.get("revision")
    )
    return {"workspace_id": record["id"], "name": record["name"], "warnings": record["warnings"]}


def _provide(caller: Caller, template: Template, report: Reporter) -> None:
    """Pull or build what is missing; a published recipe "whose download failed" is built."""
    if template.source_type == "dockerfile":
        builds.run(caller, template, report, builds.last_arguments(caller, template.image_ref))
        return
    try:
        pulls.run(caller, template.image_ref, report)
    except DOWNLOAD_FAILED as error:
        if template.dockerfile is None or report.cancelled():
            raise
        report.add_log(f"the download failed ({error.message}); it is built from its Dockerfile instead")
        builds.run(caller, template, report)


def _template(caller: Caller, taken: dict[str, Any]) -> Template:
    """The template at the revision of the request, which operations of earlier releases do not have."""
    request = taken["request"]
    if "revision" not in request:
        return template_rows.find(caller, request["workspace"]["template"])
    return template_rows.at_revision(request["template_id"], request["revision"])


RUNS = {"pull": _pull, "build": _build, "setup": _setup}
