from __future__ import annotations

from typing import Any

import pytest
from unit.admin.accounts import add_token

from svc.db.connect import close_database, open_database
from svc.db.connect import database as connected
from svc.domain.accounts import sessions, tokens, users
from svc.errors import HostRefused


@pytest.fixture
def two(database: str) -> str:
    """Ada with two tokens and a session, ben with a token."""
    open_database(database)
    ada, ben = (users.create(name, uid=uid) for name, uid in (("ada", 4001), ("ben", 4002)))
    for user, name in ((ada, "one"), (ada, "two"), (ben, "three")):
        add_token(user.id, name)
    sessions.begin(ada.id, "192.0.2.1")
    close_database()
    return database


def test_all_tokens_of_the_user_end_and_nothing_else(svc: Any, two: str) -> None:
    assert svc("revoke-tokens", "ada") == (0, "2 tokens of ada revoked\n", "")
    assert svc("revoke-tokens", "ada") == (0, "ada has no tokens\n", "")
    open_database(two)
    assert users.end_access(users.get("ada").id) == (1, 0)
    assert tokens.revoke_all(users.get("ben").id) == 1


def test_it_is_on_record(svc: Any, two: str) -> None:
    svc("revoke-tokens", "ada")
    open_database(two)
    rows = connected.execute_sql(
        "SELECT via, target, outcome, detail_json FROM audit WHERE action = 'admin.revoke_tokens'"
    ).fetchall()
    assert rows == [("admin", "ada", "ok", '{"revoked":2,"target_owner":"ada"}')]


def test_it_is_done_and_on_record_or_neither(svc: Any, two: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HostRefused("no record, no deed")

    monkeypatch.setattr("svc.admin.people.revoke_tokens.note", fail)
    assert svc("revoke-tokens", "ada")[0] == 1
    open_database(two)
    assert tokens.revoke_all(users.get("ada").id) == 2


def test_an_unknown_account_is_said(svc: Any, two: str) -> None:
    code, _, err = svc("revoke-tokens", "nosuch")
    assert code == 1
    assert "svc admin list-users" in err
