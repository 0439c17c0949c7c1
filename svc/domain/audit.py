"""The audit table: who did what, to what, how it ended; rows are only ever added.

An action that reaches a container leaves two rows under one request id: `begun`
before and the outcome after, so that a crash in between is on record too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from svc.db.connect import database, write
from svc.db.ids import now
from svc.domain.callers import Caller
from svc.errors import SvcError

VIA = {"peer": "socket", "session": "session", "pat": "token", "worker": "worker"}


def add(caller: Caller, action: str, target: str, outcome: str, **detail: Any) -> None:
    """Add one row; inside a transaction it is kept or lost with it."""
    with write():
        database.execute_sql(
            "INSERT INTO audit (at, user_id, user_name, via, address, action, target, outcome, request_id,"
            " detail_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                now(),
                caller.user_id,
                caller.name,
                VIA[caller.kind],
                caller.address,
                action,
                target,
                outcome,
                caller.rid,
                json.dumps(detail),
            ),
        )


@contextmanager
def audited(caller: Caller, action: str, target: str, **detail: Any) -> Iterator[dict[str, Any]]:
    """A row before what is done inside and one with its outcome after; what it yields takes more detail."""
    add(caller, action, target, "begun", **detail)
    more: dict[str, Any] = {}
    outcome = "internal_error"
    try:
        yield more
        outcome = "ok"
    except SvcError as error:
        outcome = error.code
        raise
    finally:
        add(caller, action, target, outcome, **more)
