"""What is forgotten a season after its end, and what stays."""

from __future__ import annotations

import pytest

from svc.db.connect import database, write
from svc.domain import retention
from svc.domain.audit import audit, chain
from svc.domain.principal import Caller
from svc.host.ids import after, now
from svc.limits import ENDED_DAYS_KEPT


def days_ago(days: float) -> str:
    return after(now(), -days * retention.DAY_S)


def operation(
    owner: int, name: str, finished: float | None, status: str = "succeeded", subject: str = "x"
) -> None:
    """One that finished so many days ago, with a line of log."""
    at = days_ago(finished or 0)
    with write():
        database.execute_sql(
            "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, created_at,"
            " updated_at, finished_at) VALUES (?, ?, 'build', 'image', ?, ?, ?, ?, ?)",
            (name, owner, subject, status, at, at, at if finished else None),
        )
        database.execute_sql("INSERT INTO operation_log VALUES (?, 1, ?, 'STEP 1')", (name, at))


def token(owner: int, name: str, ended: float | None) -> None:
    at = days_ago(ended) if ended else None
    with write():
        database.execute_sql(
            "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at, ended_at,"
            " end_reason) VALUES (?, ?, ?, '', ?, ?, ?, ?, iif(? IS NULL, NULL, 'revoked'))",
            (name, owner, name, name, now(), now(), at, at),
        )


def left(table: str) -> list[str]:
    return [row[0] for row in database.execute_sql(f"SELECT id FROM {table} ORDER BY id")]


def test_what_ended_long_ago_is_forgotten(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """In steps; what runs, ended lately, or was the last success stays, and so does the audit."""
    monkeypatch.setattr(retention, "STEP", 2)
    audit.add(ada, "image.build", "x", "ok")
    old = ENDED_DAYS_KEPT + 1
    for number in range(5):
        operation(ada.user_id, f"old-{number}", old + number, "failed")
    operation(ada.user_id, "first", old + 2)
    operation(ada.user_id, "last", old)
    operation(ada.user_id, "other", old + 9, subject="y")
    operation(ada.user_id, "recent", ENDED_DAYS_KEPT - 1, "failed")
    operation(ada.user_id, "runs", None, "running")
    for name, ended in (("tok-old", old), ("tok-recent", 1), ("tok-valid", None)):
        token(ada.user_id, name, ended)
    assert retention.forget_ended() == {"operations": 6, "tokens": 1}
    assert left("operations") == ["last", "other", "recent", "runs"]
    assert [row[0] for row in database.execute_sql("SELECT operation_id FROM operation_log ORDER BY 1")] == [
        "last", "other", "recent", "runs",
    ]  # fmt: skip
    assert left("tokens") == ["tok-recent", "tok-valid"]
    assert retention.forget_ended() == {}
    assert chain.verify().rows == 1
