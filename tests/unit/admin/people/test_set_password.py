from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.admin.accounts import add_token

from svc.db.connect import close_database, open_database
from svc.db.connect import database as connected
from svc.domain.accounts import passwords, retirement, sessions, users
from svc.errors import HostRefused
from svc.host.secret import read_secret

GOOD = b"q7#fLp2z tap cup\n"


def verifies(path: str, name: str, password: str) -> bool:
    open_database(path)
    stored = users.get(name).password_hash
    close_database()
    return passwords.verify(password, stored, read_secret(str(Path(path).with_name("secret.key"))))


def audit(path: str) -> list[tuple[str, ...]]:
    open_database(path)
    rows: list[tuple[str, ...]] = connected.execute_sql(
        "SELECT user_name, via, address, action, target, outcome FROM audit ORDER BY id"
    ).fetchall()
    close_database()
    return rows


def test_it_rotates_the_service_password(svc: Any, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_USER", "ada")
    code, out, err = svc("set-password", "root", stdin=GOOD)
    assert (code, out, err) == (0, "the service password of root is set\n", "")
    assert verifies(database, "root", "q7#fLp2z tap cup")
    assert svc("set-password", "root", stdin=b"another Zebra7-cup")[0] == 0
    assert verifies(database, "root", "another Zebra7-cup")
    assert not verifies(database, "root", "q7#fLp2z tap cup")
    assert audit(database) == [("root", "admin", "sudo:ada", "admin.set_password", "root", "ok")] * 2


@pytest.mark.parametrize("stdin", [b"", b"short\n", b"elevenchars\n", b"administrator1\n", None])
def test_a_bad_one_changes_nothing(svc: Any, database: str, stdin: bytes | None) -> None:
    svc("set-password", "root", stdin=GOOD)
    code, out, err = svc("set-password", "root", stdin=stdin)
    assert (code, out) == (1, "")
    assert err.startswith("svc: ")
    assert (stdin or b"no such text").strip().decode() not in err
    assert verifies(database, "root", "q7#fLp2z tap cup")
    assert audit(database)[-1][-1] == "validation_failed"


@pytest.fixture
def ada(database: str) -> str:
    """A user with two sessions, a token, and a login that is closed."""
    open_database(database)
    user = users.create("ada", uid=4001, provisioning=users.READY)
    users.update(user, password_hash="v1$x", password_closed=True, failed_logins=100)
    for address in ("192.0.2.1", "192.0.2.2"):
        sessions.begin(user.id, address)
    add_token(user.id, "one")
    close_database()
    return database


def test_all_sessions_and_tokens_end_and_the_login_is_open(svc: Any, ada: str) -> None:
    code, out, err = svc("set-password", "ada", stdin=GOOD)
    assert (code, err) == (0, "")
    assert out == "the service password of ada is set; 2 sessions and 1 token ended\n"
    open_database(ada)
    user = users.get("ada")
    assert (user.password_closed, user.failed_logins, user.password_length) == (False, 0, 16)
    assert users.end_access(user.id) == (0, 0)
    last = connected.execute_sql("SELECT detail_json FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    assert last == ('{"ended":{"sessions":2,"tokens":1},"target_owner":"ada"}',)


def test_it_is_done_and_on_record_or_neither(svc: Any, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise HostRefused("no record, no deed")

    monkeypatch.setattr("svc.admin.people.set_password.note", fail)
    assert svc("set-password", "ada", stdin=GOOD)[0] == 1
    open_database(ada)
    assert users.get("ada").password_hash == "v1$x"
    assert users.end_access(users.get("ada").id) == (2, 1)


@pytest.mark.parametrize(
    ("columns", "command"),
    [
        ({"provisioning": users.CLEANUP}, "sudo svc admin create-user ada"),
        ({"disabled": True}, "sudo svc admin edit-user ada --enable"),
    ],
)
def test_why_it_does_not_yet_let_anybody_in_is_said(
    svc: Any, ada: str, columns: dict[str, Any], command: str
) -> None:
    open_database(ada)
    users.update(users.get("ada"), **columns)
    close_database()
    code, _, err = svc("set-password", "ada", stdin=GOOD)
    assert code == 0
    assert command in err


def test_nobody_logs_in_to_a_retired_account_again(svc: Any, ada: str) -> None:
    open_database(ada)
    retirement.retire(users.get("ada"))
    close_database()
    code, _, err = svc("set-password", "ada:4001", stdin=GOOD)
    assert code == 1
    assert "sudo svc admin list-users" in err


def test_an_interrupt_changes_nothing(svc: Any, ada: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_name: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("svc.admin.people.set_password.read_password", interrupt)
    assert svc("set-password", "ada")[0] == 130
    assert audit(ada)[-1][-1] == "aborted"


def test_an_unknown_account_is_said(svc: Any, database: str) -> None:
    code, _, err = svc("set-password", "nosuch", stdin=GOOD)
    assert code == 1
    assert "there is no account nosuch" in err
    assert "svc admin list-users" in err


def test_a_loose_secret_is_refused(svc: Any, database: str) -> None:
    Path(database).with_name("secret.key").chmod(0o644)
    code, _, err = svc("set-password", "root", stdin=GOOD)
    assert code == 1
    assert "svc admin doctor --repair" in err


def test_without_a_database_the_next_command_is_named(svc: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "none.db")
    code, _, err = svc("set-password", "root", "--db", path, stdin=GOOD)
    assert code == 1
    assert f"hint: sudo svc admin migrate --db {path}" in err
