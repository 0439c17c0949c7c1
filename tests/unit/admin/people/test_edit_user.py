"""`svc admin edit-user`: what it changes and refuses; root's enrolment list is tested on a real host."""

from __future__ import annotations

import re
from typing import Any

import pytest

from svc.db.connect import close_database, open_database, write
from svc.domain.accounts import users
from svc.domain.quotas import policies


@pytest.fixture
def people(database: str) -> None:
    """An account in each state."""
    open_database(database)
    users.create("half", provisioning=users.INCOMPLETE)
    users.create("ada", uid=4001, provisioning=users.READY)
    users.create("boss", uid=4002, provisioning=users.READY, superuser=True)
    with write():
        policies.store("lab", {"max_gpus": 2})
    close_database()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("ada", "name at least one change"),
        ("ada --enable --disable", "--enable and --disable exclude each other"),
        ("ada --superuser --no-superuser", "--superuser and --no-superuser exclude each other"),
    ],
)
def test_what_is_no_change(svc: Any, database: str, line: str, says: str) -> None:
    code, _, err = svc("edit-user", *line.split())
    assert code == 2 and says in err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("root --superuser", "always an administrator"),
        ("root --disable", "always an administrator"),
        ("nobody-here --disable", "no account"),
        ("half --superuser", "not complete"),
        ("ada --quota none", "no quota none\nhint: sudo svc admin quota list"),
        ("boss --disable", "last administrator besides root"),
        ("boss --no-superuser", "edit-user boss --no-superuser --last-administrator"),
        ("ada --display-name \x07", "without control, direction or invisible characters"),
        ("ada --display-name \u202eada", "without control, direction or invisible characters"),
    ],
)
def test_what_is_refused(svc: Any, people: None, database: str, line: str, says: str) -> None:
    code, _, err = svc("edit-user", *line.split(" "))
    assert code == 1 and says in err
    open_database(database)
    assert not any(user.disabled for user in users.every())


def test_changes_of_the_row(svc: Any, people: None, database: str) -> None:
    code, out, _ = svc("edit-user", "ada", "--quota", "lab", "--display-name", "Ada", "--disable")
    assert (code, out) == (0, "ada is disabled\nada has the quota lab\nada has the display name 'Ada'\n")
    code, out, _ = svc("edit-user", "boss", "--disable", "--last-administrator")
    assert (code, out) == (0, "boss is disabled\n")
    assert svc("edit-user", "boss", "--disable")[0] == 0  # the same again: nobody is lost by it
    assert svc("edit-user", "ada", "--quota", "default", "--enable")[0] == 0
    open_database(database)
    ada = users.get("ada")
    assert (ada.quota, ada.disabled, ada.display_name) == (None, 0, "Ada")


@pytest.mark.allow_commands("python", "python3")
def test_a_change_whose_second_half_fails_is_not_denied(svc: Any, people: None, database: str) -> None:
    """The row is changed before root's list, which no helper of this test can write."""
    code, out, err = svc("edit-user", "boss", "--no-superuser", "--display-name", "B", "--last-administrator")
    assert (code, out) == (1, "boss is an ordinary user\nboss has the display name 'B'\n")
    assert re.search(r"\nhint: sudo svc .*edit-user boss --no-superuser --display-name B --last-admin", err)
    open_database(database)
    assert not users.get("boss").superuser
