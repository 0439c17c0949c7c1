"""An account whose Linux account is no more: closed, its records kept, and nothing for whoever comes next."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.serving import make_template, make_user, make_workspace

from svc.db import migrate
from svc.db.connect import close_database, database, open_database
from svc.domain.accounts import retirement, sessions, users
from svc.domain.accounts.users import Account
from svc.domain.workspaces import reconcile_rules


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Account]:
    """A superuser with everything that one can have."""
    open_database(str(tmp_path / "svc.db"), create=True)
    migrate.apply(database.connection())
    user = make_user("ada", 2001, superuser=True, display_name="Ada Lovelace")
    users.set_password(user, "v1$hash", 16)
    sessions.begin(user.id, "192.0.2.1")
    database.execute_sql(
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        " VALUES ('tok-1', ?, 'laptop', '', 'x', '2026-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z')",
        (user.id,),
    )
    template = make_template(user.id)
    make_workspace(user.id, template, "lab", status="running")
    make_workspace(user.id, template, "old", status_reason="user_requested")
    yield user
    close_database()


def add_operation(user_id: int, status: str) -> None:
    database.execute_sql(
        "INSERT INTO operations (id, owner_id, status, kind, subject_type, subject_id, created_at,"
        " updated_at) VALUES (?, ?, ?, 'pull', 'image', 'x', '', '')",
        (f"op-{status}", user_id, status),
    )


def test_nothing_opens_it_any_more(ada: Account) -> None:
    assert retirement.retire(ada) == "ada:2001"
    row = users.get("ada:2001")
    assert (row.id, row.uid, row.superuser, row.disabled) == (ada.id, None, False, True)
    assert (row.password_hash, row.password_length) == (None, None)
    assert users.status_name(row) == "PROVISIONING_CLEANUP_REQUIRED"
    assert row.provisioning_note == (
        "the Linux account ada (uid 2001) was removed; on record: 2 workspaces and 1 template"
    )
    assert users.end_access(row.id) == (0, 0)
    assert (users.find("ada"), users.find_by_uid(2001)) == (None, None)


@pytest.mark.parametrize("name", ["ada", "ben"])
def test_whoever_comes_next_inherits_nothing(ada: Account, name: str) -> None:
    retirement.retire(ada)
    new = make_user(name, 2001)
    assert new.id != ada.id
    for owned in ("workspaces WHERE owner_id", "templates WHERE owner_id", "tokens WHERE user_id"):
        assert database.execute_sql(f"SELECT count(*) FROM {owned} = ?", (new.id,)).fetchone() == (0,)
    assert (new.display_name, new.superuser, new.password_hash) == ("", False, None)


def test_what_ran_counts_as_stopped_and_what_waited_is_cancelled(ada: Account) -> None:
    for status in ("queued", "running", "succeeded"):
        add_operation(ada.id, status)
    retirement.retire(ada)
    assert set(database.execute_sql("SELECT name, status, status_reason FROM workspaces")) == {
        ("lab", "stopped", "engine_error"),
        ("old", "stopped", "user_requested"),
    }
    assert set(database.execute_sql("SELECT id, status, cancel_requested FROM operations")) == {
        ("op-queued", "cancelled", 1),
        ("op-running", "running", 1),
        ("op-succeeded", "succeeded", 0),
    }


def test_the_worker_asks_nobody_about_it(ada: Account) -> None:
    assert len(reconcile_rules.rows()) == 2
    retirement.retire(ada)
    assert (reconcile_rules.rows(), reconcile_rules.rows(ada.id)) == ([], [])


def test_a_name_may_be_retired_again_and_again(ada: Account) -> None:
    names = [retirement.retire(ada)]
    for _ in range(2):
        names.append(retirement.retire(make_user("ada", 2001)))
    assert names == ["ada:2001", "ada:2001:2", "ada:2001:3"]
    assert users.get("ada:2001:2").provisioning_note.endswith("on record: nothing")
    assert all(users.is_retired(users.get(name)) for name in names)
    assert not users.is_retired(make_user("ada.2001", 2001))


def test_a_person_takes_the_name_that_an_earlier_release_gave_a_retired_account(ada: Account) -> None:
    retirement.retire(ada)
    users.update(users.get("ada:2001"), name="ada.2001")
    assert retirement.retire(users.get("ada.2001")) == "ada:2001"
    assert users.former_linux_account(users.get("ada:2001")) == ("ada", 2001)
    assert users.create("ada.2001").id != ada.id


def test_it_is_done_wholly_or_not_at_all(ada: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr("svc.domain.accounts.users.update", fail)
    with pytest.raises(RuntimeError):
        retirement.retire(ada)
    assert users.end_access(ada.id) == (1, 1)
    assert database.execute_sql("SELECT status FROM workspaces WHERE name = 'lab'").fetchone() == ("running",)
