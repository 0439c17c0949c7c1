"""Removal of an account: everything of its rows, and nothing of others."""

from __future__ import annotations

import pytest

from svc.db.connect import database, write
from svc.domain.accounts import removal, sessions, tokens, users
from svc.domain.audit import audit
from svc.domain.principal import Caller


def test_nothing_refers_to_a_removed_account(ada: Caller, bob: Caller) -> None:
    for caller in (ada, bob):
        tokens.create(caller, "ci")
        audit.add(caller, "test.row", "x", "ok")
    old = users.get("ada")
    with write():
        ended = removal.begin(old)
    assert ended.tokens == 1 and removal.is_begun(users.get("ada"))
    assert removal.holdings(old.id).tokens == 0
    with write():
        removal.finish(users.get("ada"))
    assert users.find("ada") is None
    assert removal.holdings(bob.user_id).tokens == 1
    assert database.execute_sql("PRAGMA foreign_key_check").fetchall() == []
    rows = database.execute_sql(
        "SELECT DISTINCT user_name FROM audit WHERE user_id = ?", (old.id,)
    ).fetchall()
    assert rows == [("ada",)]
    assert users.create("ada").id > max(old.id, bob.user_id)


@pytest.mark.parametrize("status", ["queued", "running"])
def test_what_the_worker_does_is_cancelled(ada: Caller, status: str) -> None:
    with write():
        database.execute_sql(
            "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, created_at,"
            " updated_at) VALUES ('op-1', ?, 'pull', 'image', 'x', ?, '', '')",
            (ada.user_id, status),
        )
        removal.begin(users.get("ada"))
    row = database.execute_sql("SELECT status, cancel_requested FROM operations").fetchone()
    assert row == ("cancelled" if status == "queued" else "running", 1)
    assert removal.operations_running(ada.user_id) == (status == "running")
    assert sessions.end_all(ada.user_id) == 0
