"""The steps on an account's row, each able to be done again, each wholly done or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.actions.table import ADMIN_RETIRE_USER
from svc.admin.people import account_rows
from svc.db.connect import close_database, open_database
from svc.db.connect import database as connected
from svc.domain.accounts import sessions, users
from svc.errors import Conflict, HostRefused, NameTaken
from svc.settings import Settings

GOOD = "q7#fLp2z"


@pytest.fixture(autouse=True)
def linux(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The Linux accounts of this host."""
    accounts = {"ada": 4001}
    monkeypatch.setattr(account_rows, "linux_uid", accounts.get)
    return accounts


def record(path: str, name: str = "ada") -> dict[str, Any]:
    open_database(path)
    user = users.find(name)
    close_database()
    return users.record(user) if user else {}


@pytest.fixture
def secret(database: str) -> str:
    return str(Path(database).with_name("secret.key"))


@pytest.fixture
def settings(database: str) -> Settings:
    return Settings({"SVC_DB": database}, environ={}, file={})


@pytest.fixture
def whole(database: str, settings: Settings) -> str:
    """A database in which ada is ready."""
    account_rows.begin(database, "ada", "", False)
    account_rows.finish(database, settings, "ada", 4001, GOOD)
    close_database()
    return database


def test_beginning_again_keeps_the_name_and_takes_the_flag_that_was_said_last(database: str) -> None:
    account_rows.begin(database, "ada", "Ada Lovelace", True)
    account_rows.begin(database, "ada", "", False)
    assert record(database)["display_name"] == "Ada Lovelace"
    assert record(database)["superuser"] is False
    assert record(database)["status"] == "PROVISIONING_INCOMPLETE"


def test_what_failed_for_now_and_what_needs_mending(database: str) -> None:
    account_rows.begin(database, "ada", "", False)
    account_rows.abandon(database, "ada", "the helper ended", retryable=True, refused=False)
    assert record(database)["status"] == "PROVISIONING_INCOMPLETE"
    account_rows.abandon(database, "ada", "Linux account: useradd failed", retryable=False, refused=False)
    assert record(database)["status"] == "PROVISIONING_CLEANUP_REQUIRED"
    assert record(database)["note"] == "Linux account: useradd failed"
    account_rows.abandon(database, "ada", "a system account", retryable=False, refused=True)
    assert record(database) == {}


def test_a_refused_account_that_had_a_uid_stays(whole: str) -> None:
    open_database(whole)
    users.update(users.get("ada"), provisioning=users.INCOMPLETE)
    account_rows.abandon(whole, "ada", "a system account", retryable=False, refused=True)
    assert record(whole)["uid"] == 4001
    assert record(whole)["status"] == "PROVISIONING_CLEANUP_REQUIRED"


def test_a_look_says_whether_it_is_whole(
    database: str, secret: str, settings: Settings, linux: dict[str, int]
) -> None:
    assert account_rows.inspect(database, secret, "ada")["whole"] is False
    account_rows.begin(database, "ada", "Ada", True)
    found = account_rows.inspect(database, secret, "ada")
    assert found == {"whole": False, "uid": None, "superuser": True, "display_name": "Ada"}
    account_rows.finish(database, settings, "ada", 4001, GOOD)
    assert account_rows.inspect(database, secret, "ada")["whole"] is True
    linux["ada"] = 4002
    assert account_rows.inspect(database, secret, "ada")["whole"] is False
    assert account_rows.inspect(database, secret, "root")["whole"] is True


def test_a_missing_secret_is_found_out_early(database: str, secret: str) -> None:
    Path(secret).unlink()
    with pytest.raises(HostRefused):
        account_rows.inspect(database, secret, "ada")


def test_another_run_that_was_quicker_is_not_undone(whole: str) -> None:
    with pytest.raises(NameTaken, match="just created the account"):
        account_rows.begin(whole, "ada", "", False)
    assert record(whole)["status"] == "READY"


def test_to_finish_ends_what_was_open_before(whole: str, settings: Settings) -> None:
    open_database(whole)
    user = users.get("ada")
    users.update(user, provisioning=users.CLEANUP, password_closed=True, failed_logins=100)
    sessions.begin(user.id, "192.0.2.1")
    account_rows.finish(whole, settings, "ada", 4001, "another Zebra7-cup")
    assert users.end_access(user.id) == (0, 0)
    assert (users.get("ada").password_closed, users.get("ada").failed_logins) == (False, 0)


def test_a_uid_has_one_account(database: str, settings: Settings) -> None:
    account_rows.begin(database, "ada", "", False)
    with pytest.raises(Conflict, match="belongs to the service account root"):
        account_rows.finish(database, settings, "ada", 0, GOOD)
    assert record(database)["status"] == "PROVISIONING_CLEANUP_REQUIRED"


def test_an_account_without_its_linux_account_makes_way(
    whole: str, settings: Settings, linux: dict[str, int]
) -> None:
    assert account_rows.begin(whole, "ben", "", False) == []
    with pytest.raises(Conflict, match="belongs to the service account ada"):
        account_rows.finish(whole, settings, "ben", 4001, GOOD)
    del linux["ada"]
    assert account_rows.begin(whole, "ben", "", False) == []
    assert account_rows.finish(whole, settings, "ben", 4001, GOOD) == ["ada:4001"]
    assert record(whole, "ben")["uid"] == 4001
    linux["ben"] = 4005
    assert account_rows.begin(whole, "ben", "", False) == ["ben:4001"]
    assert record(whole, "ben")["uid"] is None
    lines = connected.execute_sql(
        "SELECT target, detail_json FROM audit WHERE action = ?", (ADMIN_RETIRE_USER,)
    ).fetchall()
    assert lines == [
        ("ada:4001", '{"was":"ada","uid":4001}'),
        ("ben:4001", '{"was":"ben","uid":4001}'),
    ]


@pytest.mark.parametrize("step", ["begin", "finish"])
def test_a_step_without_its_audit_row_never_was(
    whole: str, settings: Settings, linux: dict[str, int], step: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account_rows.begin(whole, "ben", "", False)
    del linux["ada"]
    before = (record(whole), record(whole, "ben"))

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError

    monkeypatch.setattr(account_rows, "note", fail)
    with pytest.raises(RuntimeError):
        if step == "begin":
            account_rows.begin(whole, "ada", "", True)
        else:
            account_rows.finish(whole, settings, "ben", 4001, GOOD)
    assert (record(whole), record(whole, "ben")) == before
