"""Operations: pulls, builds and set-ups as rows, queued by a door, run by the worker.

A row survives a closed client and a restarted server, can be cancelled and
keeps its log. The doors enqueue, read and cancel; the worker claims, reports
and finishes. Records look like

    {id, kind, status, phase, progress: {current, total, unit, text}, error, subject: {type, id},
     result, created_at, updated_at, finished_at}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import new_id, now
from svc.domain import audit
from svc.domain.callers import Caller
from svc.errors import NotFound, OperationInProgress, SvcError

LOG_LINES_MAX = 2000  # of one operation; a pull says far less
# What the audit calls an operation of a kind.
ACTIONS = {"pull": "image.pull", "build": "image.build", "setup": "workspace.setup"}

# Called after a row was queued: wakes the worker. The process that serves sets it.
wake: Callable[[], None] = lambda: None  # noqa: E731  a replaceable default, not a function

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
    owner has an open operation of the same kind on the same subject. Audited as
    begun; its end is, under the same request id.
    """
    operation_id, at = new_id("op"), now()
    with write():
        under_way = open_for(caller.user_id, subject_type, subject_id, kind)
        if under_way:
            raise OperationInProgress(
                f"a {under_way['kind']} of {subject_id} is already under way",
                hint=f"svc api GET /api/operations/{under_way['id']}",
                details={"operation": under_way},
            )
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
        audit.add(caller, ACTIONS[kind], subject_id, "begun", operation=operation_id)
    wake()
    return get(caller, operation_id)


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


def open_for(
    owner_id: int, subject_type: str, subject_id: str, kind: str | None = None
) -> dict[str, Any] | None:
    """The owner's queued or running operation on a subject, if there is one."""
    row = database.execute_sql(
        f"SELECT {RECORD} FROM operations o"
        " WHERE o.owner_id = ? AND o.subject_type = ? AND o.subject_id = ?"
        " AND o.status IN ('queued', 'running') AND coalesce(?, o.kind) = o.kind"
        " ORDER BY o.created_at LIMIT 1",
        (owner_id, subject_type, subject_id, kind),
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

    `busy_owners` counts the operations that this worker already runs for each owner.
    """
    with write():
        rows = database.execute_sql(
            "SELECT o.id, o.owner_id, o.kind, o.subject_type, o.subject_id, o.request_json, o.request_id,"
            " u.name, u.uid FROM operations o JOIN users u ON u.id = o.owner_id"
            " WHERE o.status = 'queued' ORDER BY o.created_at LIMIT 100"
        ).fetchall()
        row = next((row for row in rows if busy_owners.get(row[1], 0) < per_owner), None)
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


def say(operation_id: str, text: str) -> None:
    """Add one line to the operation's log; past LOG_LINES_MAX nothing is added."""
    with write():
        database.execute_sql(
            "INSERT INTO operation_log (operation_id, line, at, text)"
            " SELECT ?, count(*), ?, ? FROM operation_log WHERE operation_id = ? HAVING count(*) < ?",
            (operation_id, now(), text[:1000], operation_id, LOG_LINES_MAX),
        )


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
    audit.append(
        user_id=owner_id,
        user_name=owner,
        via="worker",
        address="",
        action=ACTIONS[kind],
        target=subject_id,
        outcome=outcome,
        rid=request_id,
        detail={"operation": operation_id},
    )


def _document(value: dict[str, Any] | None) -> str | None:
    return None if value is None else json.dumps(value)
