"""Operations: pulls, builds and set-ups as rows, queued by a listener, run by the worker.

A row survives a closed client and a restarted server, can be cancelled and
keeps its log. The listeners enqueue, read and cancel; the worker claims, reports
and finishes. Records look like

    {id, kind, status, phase, progress: {current, total, unit, text}, error, subject: {type, id},
     result, created_at, updated_at, finished_at}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from svc.db.connect import database, write
from svc.db.ids import new_id, now
from svc.domain import audit
from svc.domain.principal import Caller
from svc.errors import NotFound, OperationInProgress, QuotaExceeded, SvcError
from svc.limits import OPERATIONS_OPEN_PER_USER

LOG_LINES_MAX = 2000  # of one operation; a pull says far less
LOGS_KEPT = 50  # of one owner's operations, the newest; what they were and how they ended stays
# What the audit calls an operation of a kind.
ACTIONS = {"pull": "image.pull", "build": "image.build", "setup": "workspace.setup"}

# Called after a row was queued: wakes the worker. The process that serves sets it.
wake: Callable[[], None] = lambda: None  # noqa: E731  a replaceable default, not a function


class Report(Protocol):
    """What a run tells of itself and asks on its way; the worker's Reporter is one."""

    def phase(self, name: str) -> None:
        """Enter a phase: checking, pulling, building or creating."""

    def expect(self, download_bytes: int) -> None:
        """Note how much is to come: an engine learns that layer by layer, and a bar would jump back."""

    def progress(self, progress: dict[str, Any]) -> None:
        """Note what an agent said of its progress."""

    def say(self, text: str) -> None:
        """Add a line to the operation's log."""

    def cancelled(self) -> bool:
        """Whether the owner asked for the end."""


RECORD = """json_object(
    'id', o.id, 'kind', o.kind, 'status', o.status, 'phase', o.phase,
    'progress', json(o.progress_json), 'error', json(o.error_json),
    'subject', json_object('type', o.subject_type, 'id', o.subject_id),
    'result', json(o.result_json),
    'created_at', o.created_at, 'updated_at', o.updated_at, 'finished_at', o.finished_at)"""


def enqueue(
    caller: Caller, kind: str, subject_type: str, subject_id: str, request: dict[str, Any]
) -> dict[str, Any]:
    """Queue one operation and wake the worker; returns its record.

    Raises OperationInProgress (details: the operation under way) when the same
    owner has an open operation on the same subject, QuotaExceeded when too many
    wait. Audited as begun; its end is, under the same request id.
    """
    operation_id, at = new_id("op"), now()
    with write():
        require_none(caller, subject_type, subject_id)
        _require_room(caller)
        database.execute_sql(
            "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, request_json,"
            " request_id, created_at, updated_at) VALUES (?, ?, ?, ?, ?, 'queued', ?, ?, ?, ?)",
            (
                operation_id,
                caller.user_id,
                kind,
                subject_type,
                subject_id,
                json.dumps(request),
                caller.rid,
                at,
                at,
            ),
        )
        database.execute_sql(
            "DELETE FROM operation_log WHERE operation_id IN (SELECT id FROM operations"
            " WHERE owner_id = ? ORDER BY created_at DESC LIMIT -1 OFFSET ?)",
            (caller.user_id, LOGS_KEPT),
        )
        audit.add(caller, ACTIONS[kind], subject_id, "begun", operation=operation_id)
    wake()
    return get(caller, operation_id)


def require_none(caller: Caller, subject_type: str, subject_id: str) -> None:
    """Raise OperationInProgress where one of the caller's operations on a subject is under way."""
    if under_way := open_for(caller.user_id, subject_type, subject_id):
        raise OperationInProgress(
            f"a {under_way['kind']} of {subject_id} is already under way",
            hint=f"svc api GET /api/operations/{under_way['id']}",
            details={"operation": under_way},
        )


def _require_room(caller: Caller) -> None:
    used = database.execute_sql(
        "SELECT count(*) FROM operations WHERE owner_id = ? AND status IN ('queued', 'running')",
        (caller.user_id,),
    ).fetchone()[0]
    if used >= OPERATIONS_OPEN_PER_USER:
        raise QuotaExceeded(
            f"{used} pulls, builds and set-ups of yours are under way already",
            hint="svc image builds",
            details={
                "resource": "operations", "limit": OPERATIONS_OPEN_PER_USER, "used": used, "requested": 1,
            },
        )  # fmt: skip


def get(caller: Caller, operation_id: str) -> dict[str, Any]:
    """The caller's operation of that id; raises NotFound, also for another's."""
    row = database.execute_sql(
        f"SELECT {RECORD} FROM operations o WHERE o.id = ? AND o.owner_id = ?",
        (operation_id, caller.user_id),
    ).fetchone()
    if row is None:
        raise NotFound(f"no operation {operation_id}")
    record: dict[str, Any] = json.loads(row[0])
    return record


def open_for(owner_id: int, subject_type: str, subject_id: str) -> dict[str, Any] | None:
    """The owner's queued or running operation on a subject, if there is one."""
    row = database.execute_sql(
        f"SELECT {RECORD} FROM operations o"
        " WHERE o.owner_id = ? AND o.subject_type = ? AND o.subject_id = ?"
        " AND o.status IN ('queued', 'running') ORDER BY o.created_at LIMIT 1",
        (owner_id, subject_type, subject_id),
    ).fetchone()
    return json.loads(row[0]) if row else None


def log(caller: Caller, operation_id: str) -> list[dict[str, str]]:
    """The lines {at, text} that the operation has said, oldest first; raises NotFound."""
    get(caller, operation_id)
    rows = database.execute_sql(
        "SELECT at, text FROM operation_log WHERE operation_id = ? ORDER BY line", (operation_id,)
    )
    return [{"at": at, "text": text} for at, text in rows]


def cancel(caller: Caller, operation_id: str) -> dict[str, Any]:
    """Ask for the end of an operation; returns the record, of a finished one unchanged.

    A queued one is cancelled at once, a running one by the worker within a second.
    """
    at = now()
    with write():
        before = get(caller, operation_id)["status"]
        if before not in ("queued", "running"):
            return get(caller, operation_id)
        database.execute_sql(
            "UPDATE operations SET cancel_requested = 1, updated_at = ? WHERE id = ?", (at, operation_id)
        )
        audit.add(caller, "operation.cancel", operation_id, "ok")
        if before == "queued":
            database.execute_sql(
                "UPDATE operations SET status = 'cancelled', finished_at = ? WHERE id = ?", (at, operation_id)
            )
            _note_end(operation_id, "cancelled")
    wake()
    return get(caller, operation_id)


# --- the worker's side ---------------------------------------------------------------


def recover() -> int:
    """Queue again what a former worker left running; returns how many.

    Called once, before the first claim: "an interrupted pull or build is resumed".
    """
    with write():
        return database.execute_sql(
            "UPDATE operations SET status = 'queued', updated_at = ? WHERE status = 'running'", (now(),)
        ).rowcount


def claim(busy_owners: dict[int, int], per_owner: int) -> dict[str, Any] | None:
    """Take the oldest queued operation of an owner with room, as a row dictionary; None when there is none.

    `busy_owners` counts the operations that this worker already runs for each owner: whoever
    has no room delays nobody, however many of theirs are queued.
    """
    full = json.dumps([owner_id for owner_id, count in busy_owners.items() if count >= per_owner])
    with write():
        row = database.execute_sql(
            "SELECT o.id, o.owner_id, o.kind, o.subject_type, o.subject_id, o.request_json, o.request_id,"
            " u.name, u.uid FROM operations o JOIN users u ON u.id = o.owner_id"
            " WHERE o.status = 'queued' AND o.owner_id NOT IN (SELECT value FROM json_each(?))"
            " ORDER BY o.created_at LIMIT 1",
            (full,),
        ).fetchone()
        if row is None:
            return None
        database.execute_sql(
            "UPDATE operations SET status = 'running', updated_at = ? WHERE id = ?", (now(), row[0])
        )
    names = ["id", "owner_id", "kind", "subject_type", "subject_id", "request", "request_id", "owner", "uid"]
    taken = dict(zip(names, row, strict=True))
    taken["request"] = json.loads(taken["request"])
    return taken


def report(operation_id: str, phase: str, progress: dict[str, Any]) -> None:
    """Write how far an operation is: a phase and {current, total, unit, text}."""
    with write():
        database.execute_sql(
            "UPDATE operations SET phase = ?, progress_json = ?, updated_at = ?"
            " WHERE id = ? AND status = 'running'",
            (phase, json.dumps(progress), now(), operation_id),
        )


def say(operation_id: str, *texts: str, most: int | None = None) -> int:
    """Add lines to the operation's log, as many as it has room for; returns how many."""
    at = now()
    with write():
        count = database.execute_sql(
            "SELECT coalesce(max(line) + 1, 0) FROM operation_log WHERE operation_id = ?", (operation_id,)
        ).fetchone()[0]
        fitting = texts[: max(0, (LOG_LINES_MAX if most is None else most) - count)]
        for line, text in enumerate(fitting, count):
            database.execute_sql(
                "INSERT INTO operation_log (operation_id, line, at, text) VALUES (?, ?, ?, ?)",
                (operation_id, line, at, text[:1000]),
            )
    return len(fitting)


def cancel_requested(operation_id: str) -> bool:
    """Whether somebody asked for the end of this operation."""
    row = database.execute_sql(
        "SELECT cancel_requested FROM operations WHERE id = ?", (operation_id,)
    ).fetchone()
    return bool(row and row[0])


def succeed(operation_id: str, result: dict[str, Any]) -> None:
    """End a running operation well, with its result."""
    _finish(operation_id, "succeeded", None, result, "ok")


def fail(operation_id: str, error: SvcError, request_id: str) -> None:
    """End a running operation with an error, or as cancelled when that was asked for."""
    status, outcome = ("cancelled",) * 2 if cancel_requested(operation_id) else ("failed", error.code)
    _finish(operation_id, status, error.body(request_id)["error"], None, outcome)


def _finish(
    operation_id: str, status: str, error: dict[str, Any] | None, result: dict[str, Any] | None, outcome: str
) -> None:
    at = now()
    with write():
        changed = database.execute_sql(
            "UPDATE operations SET status = ?, error_json = ?, result_json = ?,"
            " updated_at = ?, finished_at = ? WHERE id = ? AND status = 'running'",
            (status, _document(error), _document(result), at, at, operation_id),
        ).rowcount
        if changed:
            _note_end(operation_id, outcome)


def _note_end(operation_id: str, outcome: str) -> None:
    """The audit row of an operation's end, under the request that began it."""
    kind, subject_id, owner_id, owner, request_id = database.execute_sql(
        "SELECT o.kind, o.subject_id, o.owner_id, u.name, o.request_id"
        " FROM operations o JOIN users u ON u.id = o.owner_id WHERE o.id = ?",
        (operation_id,),
    ).fetchone()
    audit.append_by_worker(
        owner_id, owner, ACTIONS[kind], subject_id, outcome, request_id, operation=operation_id
    )


def _document(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)
