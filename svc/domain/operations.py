"""Operations: pulls, builds and set-ups as rows, queued by a listener and run by the worker.

A row survives a disconnected client and a restart of the server, can be cancelled
and has a log. Listeners enqueue, read and cancel; the worker claims, reports and
finishes. Records:

    {id, kind, status, phase, progress: {current, total, unit, text, rate, seconds_left}, error,
     subject: {type, id, name}, template: {id, name}, result, created_at, updated_at, finished_at}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from svc.actions import commands
from svc.actions.table import IMAGE_BUILD, IMAGE_PULL, OPERATION_CANCEL, WORKSPACE_SETUP
from svc.db import reserve
from svc.db.connect import database, write
from svc.domain import pages
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import NotFound, OperationInProgress, QuotaExceeded, SvcError
from svc.host.ids import new_id, now
from svc.limits import OPERATIONS_OPEN_PER_USER

# Lines of one log: the first ones, and the last ones, which are how a long build ended; a pull has far fewer.
LOG_LINES_MAX, LOG_TAIL = 2000, 200
LOG_HEAD = LOG_LINES_MAX - LOG_TAIL
LOGS_KEPT = 50  # logs of one owner's newest operations; their rows stay
# The audit's action for each kind of operation.
ACTIONS = {"pull": IMAGE_PULL, "build": IMAGE_BUILD, "setup": WORKSPACE_SETUP}
KINDS = tuple(ACTIONS)
OPEN = ("queued", "running")  # the statuses of operations that have not ended
_IS_OPEN = "status IN ('queued', 'running')"  # in the words of their index, beside one of the two

# Wakes the worker; called after a row was queued. Set at the start of the process.
wake: Callable[[], None] = lambda: None  # noqa: E731  a replaceable default, not a function


class Report(Protocol):
    """The interface by which a run reports progress and sees a cancellation; see the worker's Reporter."""

    def phase(self, name: str) -> None:
        """Enter a phase: checking, pulling, building, copying or creating."""

    def expect(self, download_bytes: int) -> None:
        """Set the total size of the download, which Podman itself learns layer by layer."""

    def progress(self, progress: dict[str, Any]) -> None:
        """Record a progress message of an agent."""

    def add_log(self, text: str) -> None:
        """Add a line to the operation's log."""

    def cancelled(self) -> bool:
        """Whether the owner requested cancellation."""


# The name of the workspace that a set-up creates, also before it has; of an image its reference.
REQUEST = pages.stored("o.request_json")
_NAME = f"""coalesce((SELECT w.name FROM workspaces w WHERE w.id = o.subject_id),
    json_extract({REQUEST}, '$.workspace.name'), o.subject_id)"""
RECORD = f"""json_object(
    'id', o.id, 'kind', o.kind, 'status', o.status, 'phase', o.phase,
    'progress', json({pages.stored("o.progress_json", "'{}'")}),
    'error', json({pages.stored("o.error_json")}),
    'subject', json_object('type', o.subject_type, 'id', o.subject_id, 'name', {_NAME}),
    'template', json((SELECT json_object('id', t.id, 'name', t.name) FROM templates t
        WHERE t.id = json_extract({REQUEST}, '$.template_id'))),
    'result', json({pages.stored("o.result_json")}),
    'created_at', o.created_at, 'updated_at', o.updated_at, 'finished_at', o.finished_at)"""
_SORT = {name: f"o.{name}" for name in ("created_at", "updated_at", "finished_at", "kind", "status")}


def enqueue(
    caller: Caller,
    kind: str,
    subject_type: str,
    subject_id: str,
    request: dict[str, Any],
    operation_id: str = "",
) -> dict[str, Any]:
    """Queue one operation, with an id of its own or this new one, and wake the worker; returns its record.

    Raises OperationInProgress (details: the operation in progress) when the same
    owner has an open operation on the same subject, QuotaExceeded when too many are
    open. The audit has its begin and its end with the same request id.
    """
    operation_id, at = operation_id or new_id("op"), now()
    with write():
        require_none(caller, subject_type, subject_id)
        _require_room(caller)
        database.execute_sql(
            "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, request_json,"
            " request_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?)",
            (
                operation_id, caller.user_id, kind, subject_type, subject_id, json.dumps(request),
                caller.rid, at, at,
            ),
        )  # fmt: skip
        database.execute_sql(
            "DELETE FROM operation_log WHERE operation_id IN (SELECT id FROM operations"
            " WHERE owner_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)",
            (caller.user_id, LOGS_KEPT),
        )
        audit.add(caller, ACTIONS[kind], subject_id, "begun", operation=operation_id)
    wake()
    return get(caller, operation_id)


def require_none(caller: Caller, subject_type: str, subject_id: str) -> None:
    """Raise OperationInProgress when an operation of the caller on this subject is open."""
    if operation := open_for(caller.user_id, subject_type, subject_id):
        raise OperationInProgress(
            f"a {operation['kind']} of {operation['subject']['name']} is already in progress",
            hint=commands.operation_watch(operation["id"]),
            details={"operation": operation},
        )


def _require_room(caller: Caller) -> None:
    used = database.execute_sql(
        "SELECT count(*) FROM operations WHERE owner_id = ? AND status IN ('queued', 'running')",
        (caller.user_id,),
    ).fetchone()[0]
    if used >= OPERATIONS_OPEN_PER_USER:
        raise QuotaExceeded(
            f"{used} of your pulls, builds and set-ups are already queued or running",
            hint="svc operation list",
            details={
                "resource": "operations", "limit": OPERATIONS_OPEN_PER_USER, "used": used, "requested": 1,
            },
        )  # fmt: skip


def get(caller: Caller, operation_id: str) -> dict[str, Any]:
    """The caller's operation with this id; raises NotFound, also for operations of others."""
    row = database.execute_sql(
        f"SELECT {RECORD} FROM operations o WHERE o.id = ? AND o.owner_id = ?",
        (operation_id, caller.user_id),
    ).fetchone()
    if row is None:
        raise NotFound(f"there is no operation {operation_id}", hint="svc operation list")
    record: dict[str, Any] = json.loads(row[0])
    return record


def open_for(owner_id: int, subject_type: str, subject_id: str) -> dict[str, Any] | None:
    """The owner's queued or running operation on a subject, if any."""
    row = database.execute_sql(
        f"SELECT {RECORD} FROM operations o"
        " WHERE o.owner_id = ? AND o.subject_type = ? AND o.subject_id = ?"
        " AND o.status IN ('queued', 'running') ORDER BY o.created_at LIMIT 1",
        (owner_id, subject_type, subject_id),
    ).fetchone()
    return json.loads(row[0]) if row else None


def page_of(caller: Caller, page: Page, kinds: tuple[str, ...] = (), subject: str = "") -> dict[str, Any]:
    """The caller's operations, newest first; `subject`: an image, or the id or name of what it is for."""
    found, values = pages.matching(page, (_NAME, "t.name", "o.id"))
    status, statuses = pages.with_status(page, "o.status")
    order = pages.order_by(page, _SORT, "-created_at", "o.id")
    of_kind = f"o.kind IN ({', '.join('?' * len(kinds))})" if kinds else "1"
    of_subject = f"? IN (o.subject_id, {_NAME}, t.id, t.name)" if subject else "1"
    source = (
        f"FROM operations o LEFT JOIN templates t ON t.id = json_extract({REQUEST}, '$.template_id')"
        f" WHERE o.owner_id = ? AND {found} AND {status} AND {of_kind} AND {of_subject}"
    )
    parameters = (caller.user_id, *values, *statuses, *kinds, *([subject] if subject else []))
    return pages.select(page, RECORD, source, parameters, order, lambda row: json.loads(row[0]))


def log(caller: Caller, operation_id: str, after: int = 0) -> dict[str, Any]:
    """The lines of the operation's log after the line number `after`; raises NotFound.

    {lines: [{line, at, text}], next, ended}: `next` is the `after` of the next request, and
    once `ended` no further line comes. One line stands for those that a long log has lost.
    """
    ended = get(caller, operation_id)["status"] not in OPEN  # read first: the last lines precede the end
    rows = database.execute_sql(
        "SELECT line + 1, at, text FROM operation_log WHERE operation_id = ? AND line >= ? ORDER BY line",
        (operation_id, after),
    )
    lines: list[dict[str, Any]] = []
    last = after
    for line, at, text in rows:
        if missing := line - last - 1:
            lines.append({"line": line - 1, "at": at, "text": f"... {missing} lines are left out ..."})
        lines.append({"line": line, "at": at, "text": text})
        last = line
    return {"lines": lines, "next": last, "ended": ended}


def cancel(caller: Caller, operation_id: str) -> dict[str, Any]:
    """Cancel an operation and return its record; a finished operation is unchanged.

    A queued operation is cancelled at once, a running one by the worker within a second.
    """
    at = now()
    with audit.giving_back(caller), write():
        before = get(caller, operation_id)["status"]
        if before not in ("queued", "running"):
            return get(caller, operation_id)
        database.execute_sql(
            "UPDATE operations SET cancel_requested = 1, updated_at = ? WHERE id = ?", (at, operation_id)
        )
        audit.add(caller, OPERATION_CANCEL, operation_id, "ok")
        if before == "queued":
            database.execute_sql(
                "UPDATE operations SET status = 'cancelled', finished_at = ? WHERE id = ?", (at, operation_id)
            )
            _note_end(operation_id, "cancelled")
    wake()
    return get(caller, operation_id)


# --- the worker's side ---------------------------------------------------------------


def recover() -> int:
    """Queue the operations again that an earlier worker left running; returns their number.

    Called once, before the first claim: "an interrupted pull or build is resumed".
    """
    with write():
        return database.execute_sql(
            "UPDATE operations SET status = 'queued', updated_at = ?"
            f" WHERE status = 'running' AND {_IS_OPEN}",
            (now(),),
        ).rowcount


def claim(busy_owners: dict[int, int], per_owner: int) -> dict[str, Any] | None:
    """Take the oldest queued operation of an owner below the limit, as a dict of its row, or None.

    `busy_owners` has the number of operations that the worker runs for each owner. Owners at
    the limit `per_owner` are skipped, so that they do not delay others.
    """
    full = json.dumps([owner_id for owner_id, count in busy_owners.items() if count >= per_owner])
    if not database.execute_sql(f"SELECT 1 FROM operations WHERE {_IS_OPEN} LIMIT 1").fetchone():
        return None  # most rounds: nothing is locked for them
    with write():
        row = database.execute_sql(
            f"SELECT o.id, o.owner_id, o.kind, o.subject_type, o.subject_id, coalesce({REQUEST}, '{{}}'),"
            " o.request_id, u.name, u.uid FROM operations o JOIN users u ON u.id = o.owner_id"
            f" WHERE o.status = 'queued' AND o.{_IS_OPEN}"
            " AND o.owner_id NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY o.created_at LIMIT 1",
            (full,),
        ).fetchone()
        if row is None:
            return None
        database.execute_sql(
            "UPDATE operations SET status = 'running', updated_at = ? WHERE id = ?", (now(), row[0])
        )
    names = ["id", "owner_id", "kind", "subject_type", "subject_id", "request", "request_id", "owner", "uid"]
    operation = dict(zip(names, row, strict=True))
    operation["request"] = json.loads(operation["request"])
    return operation


def report(operation_id: str, phase: str, progress: dict[str, Any]) -> None:
    """Write an operation's phase and its progress {current, total, unit, text}."""
    with write():
        database.execute_sql(
            "UPDATE operations SET phase = ?, progress_json = ?, updated_at = ?"
            " WHERE id = ? AND status = 'running'",
            (phase, json.dumps(progress), now(), operation_id),
        )


def add_log(operation_id: str, *texts: str, skipped: int = 0, head: int = LOG_HEAD) -> int:
    """Add lines to the operation's log; returns how many it has had so far.

    The first `head` lines and the last LOG_TAIL stay. `skipped` lines before these were never written.
    """
    at = now()
    with write():
        end: int = database.execute_sql(
            "SELECT coalesce(max(line) + 1, 0) FROM operation_log WHERE operation_id = ?", (operation_id,)
        ).fetchone()[0]
        for line, text in enumerate(texts, end + skipped):
            database.execute_sql(
                "INSERT INTO operation_log (operation_id, line, at, text) VALUES (?, ?, ?, ?)",
                (operation_id, line, at, text[:1000]),
            )
            end = line + 1
        database.execute_sql(
            "DELETE FROM operation_log WHERE operation_id = ? AND line >= ? AND line < ?",
            (operation_id, head, end - LOG_TAIL),
        )
    return end


def cancel_requested(operation_id: str) -> bool:
    """Whether the cancellation of this operation was requested."""
    row = database.execute_sql(
        "SELECT cancel_requested FROM operations WHERE id = ?", (operation_id,)
    ).fetchone()
    return bool(row and row[0])


def succeed(operation_id: str, result: dict[str, Any]) -> None:
    """Finish a running operation with its result."""
    _finish(operation_id, "succeeded", None, result, "ok")


def fail(operation_id: str, error: SvcError, request_id: str) -> None:
    """Finish a running operation with an error, or as cancelled when that was requested."""
    status, outcome = ("cancelled",) * 2 if cancel_requested(operation_id) else ("failed", error.code)
    _finish(operation_id, status, error.body(request_id)["error"], None, outcome)


def _finish(
    operation_id: str, status: str, error: dict[str, Any] | None, result: dict[str, Any] | None, outcome: str
) -> None:
    at = now()
    with reserve.entitled(), write():
        changed = database.execute_sql(
            "UPDATE operations SET status = ?, error_json = ?, result_json = ?,"
            " updated_at = ?, finished_at = ? WHERE id = ? AND status = 'running'",
            (status, _document(error), _document(result), at, at, operation_id),
        ).rowcount
        if changed:
            _note_end(operation_id, outcome)


def _note_end(operation_id: str, outcome: str) -> None:
    """Add the audit row of an operation's end, with the request id of its begin."""
    kind, subject_id, owner_id, owner, request_id = database.execute_sql(
        "SELECT o.kind, o.subject_id, o.owner_id, u.name, o.request_id"
        " FROM operations o JOIN users u ON u.id = o.owner_id WHERE o.id = ?",
        (operation_id,),
    ).fetchone()
    actor = audit.Actor(owner_id, owner, "worker")
    audit.append(actor, ACTIONS[kind], subject_id, outcome, request_id, {"operation": operation_id})


def _document(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)
