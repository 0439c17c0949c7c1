"""Account rows as `svc admin` makes them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.serving import make_user

from svc.db import migrate
from svc.db.connect import close_database, database, open_database
from svc.domain.accounts import sessions, users
from svc.errors import Conflict, NameTaken, NotFound, ValidationFailed


@pytest.fixture(autouse=True)
def opened(tmp_path: Path) -> Iterator[None]:
    open_database(str(tmp_path / "svc.db"), create=True)
    migrate.apply(database.connection())
    yield
    close_database()


def test_an_account_begins_incomplete_and_has_no_secrets_in_its_record() -> None:
    user = users.create("ada", display_name="  Ada Lovelace ", superuser=True)
    users.set_password(user, "v1$hash", 12)
    record = users.record(users.get("ada"))
    assert record["status"] == "PROVISIONING_INCOMPLETE"
    assert (record["uid"], record["display_name"], record["superuser"]) == (None, "Ada Lovelace", True)
    assert record["has_password"] is True
    assert "v1$hash" not in str(record)


@pytest.mark.parametrize(
    ("columns", "status"),
    [
        ({"provisioning": users.READY, "uid": 1001}, "READY"),
        ({"provisioning": users.READY, "uid": 1001, "disabled": True}, "DISABLED"),
        ({"provisioning": users.CLEANUP}, "PROVISIONING_CLEANUP_REQUIRED"),
    ],
)
def test_the_states_have_their_names(columns: dict[str, object], status: str) -> None:
    user = users.create("ada")
    users.update(user, **columns)
    assert users.status_name(users.get("ada")) == status
    assert users.get("ada").updated_at >= users.get("ada").created_at


def test_names_and_uids_are_taken_once() -> None:
    users.create("ada", uid=1001)
    with pytest.raises(NameTaken):
        users.create("ada")
    with pytest.raises(NameTaken):
        users.create("ben", uid=1001)
    assert [user.name for user in users.every()] == ["ada"]


def test_several_accounts_may_wait_for_their_uid() -> None:
    users.create("ada")
    users.create("ben")
    assert users.find_by_uid(1001) is None
    assert len(users.every()) == 2


@pytest.mark.parametrize("name", [
    "", "-x", ".x", ".", "..", "@", "@x", "a" * 257, "ada\n", "ä", "a b", "../x", "a/b", "root:", "ada:2001",
    "a%b", "%u", "a\\b", "a'b", "$a", "a\u202eb", "1001", "0", "1" * 256,
])  # fmt: skip
def test_names_that_no_linux_account_has_are_refused(name: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        users.create(name)
    assert refused.value.fields[0]["field"] == "name"


@pytest.mark.parametrize("name", [
    "first.last@example.org", "a@b", "a.b", "a-", "a.", "First", "1abc", "123@example.org", "1.5", "_x",
    "a" * 256,
])  # fmt: skip
def test_names_that_a_directory_service_has(name: str) -> None:
    """They are kept as they are: first and First are two."""
    assert users.create(name).name == name
    assert name == name.swapcase() or users.find(name.swapcase()) is None
    assert users.find_owner(name) == users.find(name)


def test_a_retired_account_of_an_earlier_release_is_told_from_somebody_of_that_name() -> None:
    note = users.REMOVED.format("ada", 2001) + "; on record: nothing"
    users.update(users.create("ada.2001"), provisioning=users.CLEANUP, provisioning_note=note)
    users.update(users.create("ben.7"), provisioning=users.CLEANUP, provisioning_note="Linux account: failed")
    ready = users.create("eve.7", uid=7, provisioning=users.READY)
    former = [users.former_linux_account(user) for user in (users.get("ada.2001"), users.get("ben.7"), ready)]
    assert former == [("ada", 2001), None, None]


@pytest.mark.parametrize("display_name", ["a\nb", "a\x1b[31m", "x" * 129, "a\u2028b", "a\ud800", "\u202eabc"])
def test_display_names_with_control_characters_are_refused(display_name: str) -> None:
    with pytest.raises(ValidationFailed):
        users.check_display_name(display_name)


def test_a_missing_account_says_where_to_look() -> None:
    with pytest.raises(NotFound) as missing:
        users.get("nobody")
    assert missing.value.hint == "sudo svc admin list-users"


def test_a_password_reset_ends_all_sessions_and_tokens_and_opens_the_login() -> None:
    user = make_user("ada", 2001)
    users.update(user, password_closed=True, failed_logins=100)
    sessions.begin(user.id, "192.0.2.1")
    sessions.begin(user.id, "192.0.2.2")
    for name in ("one", "two", "three"):
        add_token(user.id, name)
    other = make_user("ben", 2002)
    sessions.begin(other.id, "192.0.2.3")
    assert users.set_password(user, "v1$hash", 12) == (2, 3)
    assert users.set_password(user, "v1$hash", 12) == (0, 0)
    assert (users.get("ada").password_closed, users.get("ada").failed_logins) == (False, 0)
    assert sessions.end_all(other.id) == 1


def add_token(user_id: int, name: str) -> None:
    database.execute_sql(
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        " VALUES (?1, ?2, ?1, '', ?1, '2026-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z')",
        (name, user_id),
    )


def test_an_id_is_given_once() -> None:
    """Audit rows know their owner by it, also those in files: nobody gets those of a removed account."""
    gone = users.create("ada")
    users.remove(gone)
    later = users.create("ben")
    assert later.id > gone.id
    users.remove(later)
    assert users.create("ada").id > later.id


def test_a_password_is_not_set_by_the_rules_of_before(db: str) -> None:
    """A prompt may stand for minutes; meanwhile the account becomes an administrator's."""
    user = users.create("ada", uid=2001, provisioning=users.READY)
    users.update(users.get("ada"), superuser=True)
    with pytest.raises(Conflict):
        users.set_password(user, "v1$x", 8)
    assert users.get("ada").password_hash is None
