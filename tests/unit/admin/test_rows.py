"""The steps on an account's row, each able to be done again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.admin import rows
from svc.db.connect import close_database, open_database
from svc.domain import users
from svc.errors import Conflict, HostRefused, NameTaken


def record(path: str) -> dict[str, Any]:
    open_database(path)
    user = users.find("ada")
    close_database()
    return users.record(user) if user else {}


@pytest.fixture
def secret(database: str) -> str:
    return str(Path(database).with_name("secret.key"))


def test_beginning_again_keeps_what_was_told_before(database: str) -> None:
    rows.begin(database, "ada", "Ada Lovelace", False)
    rows.begin(database, "ada", "", True)
    assert record(database)["display_name"] == "Ada Lovelace"
    assert record(database)["superuser"] is True
    assert record(database)["status"] == "PROVISIONING_INCOMPLETE"


def test_what_failed_for_now_and_what_needs_mending(database: str) -> None:
    rows.begin(database, "ada", "", False)
    rows.leave(database, "ada", "the helper ended", for_now=True, refused=False)
    assert record(database)["status"] == "PROVISIONING_INCOMPLETE"
    rows.leave(database, "ada", "useradd failed", for_now=False, refused=False)
    assert record(database)["status"] == "PROVISIONING_CLEANUP_REQUIRED"
    assert record(database)["note"] == "useradd failed; mend that and run the same command again"
    rows.leave(database, "ada", "a system account", for_now=False, refused=True)
    assert record(database) == {}


def test_a_refused_account_that_had_a_uid_stays(database: str, secret: str) -> None:
    rows.begin(database, "ada", "", False)
    rows.finish(database, secret, "ada", 4001, "q7#fLp2z")
    rows.begin(database, "ada", "", False)
    rows.leave(database, "ada", "a system account", for_now=False, refused=True)
    assert record(database)["uid"] == 4001
    assert record(database)["status"] == "PROVISIONING_CLEANUP_REQUIRED"


def test_a_finished_account_is_refused_early_and_so_is_a_missing_secret(database: str, secret: str) -> None:
    rows.refuse_finished(database, secret, "ada")
    with pytest.raises(NameTaken):
        rows.refuse_finished(database, secret, "root")
    Path(secret).unlink()
    with pytest.raises(HostRefused):
        rows.refuse_finished(database, secret, "ada")


def test_a_uid_has_one_account(database: str, secret: str) -> None:
    rows.begin(database, "ada", "", False)
    with pytest.raises(Conflict, match="that of the service account root"):
        rows.finish(database, secret, "ada", 0, "q7#fLp2z")
    assert record(database)["status"] == "PROVISIONING_CLEANUP_REQUIRED"
