"""create-user: the row first, then the host, and every way in which that can end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from svc.db.connect import close_database, open_database
from svc.db.models import Audit
from svc.domain import users
from svc.errors import AdminOnly, Conflict, EngineFailed, EngineUnavailable, SvcError

GOOD = b"q7#fLp2z tap cup\n"


class FakeHelper:
    """Records calls and gives the answer it was told."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.answer: dict[str, Any] | BaseException = {
            "name": "ada",
            "uid": 4001,
            "home": "/home/ada",
            "created": True,
        }
        self.calls: list[tuple[Any, ...]] = []
        self.row_during_call: dict[str, Any] = {}

    def call(self, verb: str, user: str, args: dict[str, Any], *, rid: str) -> dict[str, Any]:
        self.calls.append((verb, user, args))
        self.row_during_call = row(self.path)
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


@pytest.fixture
def helper(database: str, monkeypatch: pytest.MonkeyPatch) -> FakeHelper:
    fake = FakeHelper(database)

    @contextmanager
    def own_helper(_settings: Any) -> Iterator[FakeHelper]:
        yield fake

    monkeypatch.setattr("svc.admin.host.own_helper", own_helper)
    return fake


def row(path: str, name: str = "ada") -> dict[str, Any]:
    open_database(path)
    user = users.find(name)
    record = users.record(user) if user else {}
    close_database()
    return record


def outcomes(path: str) -> list[str]:
    open_database(path)
    found = [line.outcome for line in Audit.select().where(Audit.target == "ada")]
    close_database()
    return found


def test_the_row_the_host_then_ready(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    code, out, _ = svc("create-user", "ada", "--display-name", "Ada Lovelace", stdin=GOOD)
    assert (code, out) == (0, "the account ada (uid 4001) is ready\n")
    assert helper.calls == [("account.ensure", "ada", {"administrator": False})]
    assert helper.row_during_call["status"] == "PROVISIONING_INCOMPLETE"
    assert "run the same command again" in helper.row_during_call["note"]
    record = row(helper.path)
    assert (record["status"], record["note"], record["uid"]) == ("READY", "", 4001)
    assert (record["has_password"], record["superuser"], record["display_name"]) == (
        True,
        False,
        "Ada Lovelace",
    )
    assert outcomes(helper.path) == ["begun", "ok"]


def test_a_superuser_is_an_administrator_to_the_helper(
    svc: Any, helper: FakeHelper, needs_root: None
) -> None:
    assert svc("create-user", "ada", "--superuser", stdin=b"tooshort7#k")[0] == 1
    assert helper.calls == []
    assert svc("create-user", "ada", "--superuser", stdin=GOOD)[0] == 0
    assert helper.calls == [("account.ensure", "ada", {"administrator": True})]
    assert row(helper.path)["superuser"] is True


@pytest.mark.parametrize(
    "stdin", [b"", b"\n", b"short\n", b"password123\n", b"ada-ada-ada\n", b"\xff\n", None]
)
def test_a_bad_password_touches_nothing(
    svc: Any, helper: FakeHelper, stdin: bytes | None, needs_root: None
) -> None:
    code, _, err = svc("create-user", "ada", stdin=stdin)
    assert code == 1
    assert err.startswith("svc: ")
    assert (helper.calls, row(helper.path)) == ([], {})


@pytest.mark.parametrize("name", ["Ada", "-x", "a" * 33, "ada\n", "../ada"])
def test_a_bad_name_touches_nothing(svc: Any, helper: FakeHelper, name: str, needs_root: None) -> None:
    code, _, _ = svc("create-user", "--", name, stdin=GOOD)
    assert code == 1
    assert helper.calls == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EngineUnavailable("the helper ended"), "PROVISIONING_INCOMPLETE"),
        (EngineFailed("useradd ada ended with 1"), "PROVISIONING_CLEANUP_REQUIRED"),
        (Conflict("there is a group ada in the way"), "PROVISIONING_CLEANUP_REQUIRED"),
    ],
)
def test_a_failure_says_what_is_left_and_again_finishes_it(
    svc: Any, helper: FakeHelper, error: SvcError, status: str, needs_root: None
) -> None:
    good, helper.answer = helper.answer, error
    code, out, err = svc("create-user", "ada", stdin=GOOD)
    assert (code, out) == (1, "")
    assert error.message in err
    record = row(helper.path)
    assert record["status"] == status
    assert record["note"].startswith(error.message)
    assert not record["has_password"]
    helper.answer = good
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    assert row(helper.path)["status"] == "READY"
    assert outcomes(helper.path) == ["begun", "failed", "begun", "ok"]


def test_an_interrupt_leaves_it_incomplete(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    helper.answer = KeyboardInterrupt()
    assert svc("create-user", "ada", stdin=GOOD)[0] == 130
    assert row(helper.path)["status"] == "PROVISIONING_INCOMPLETE"


def test_a_name_that_the_host_refuses_leaves_no_row(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    helper.answer = AdminOnly("refused")
    code, _, err = svc("create-user", "ada", stdin=GOOD)
    assert code == 1
    assert "a system account" in err
    assert row(helper.path) == {}
    assert outcomes(helper.path) == ["begun", "refused"]


def test_an_account_that_is_whole_is_left_alone(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    helper.answer = {"uid": 65534}
    assert svc("create-user", "nobody", stdin=GOOD)[0] == 0
    code, _, err = svc("create-user", "nobody", stdin=b"another Zebra7-cup")
    assert code == 1
    assert "hint: svc admin set-password nobody" in err
    assert svc("create-user", "root", stdin=GOOD)[0] == 1
    assert len(helper.calls) == 1


def test_an_account_whose_linux_account_went_is_made_again(
    svc: Any, helper: FakeHelper, needs_root: None
) -> None:
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    helper.answer = {"uid": 4002}
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    assert row(helper.path)["uid"] == 4002


def test_a_uid_of_another_account_is_not_taken_over(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    code, _, err = svc("create-user", "ben", stdin=GOOD)
    assert code == 1
    assert "uid 4001 is that of the service account ada" in err
    assert row(helper.path, "ben")["status"] == "PROVISIONING_CLEANUP_REQUIRED"
    assert row(helper.path, "ben")["uid"] is None


@pytest.mark.parametrize("answer", [{}, {"uid": "4001"}, {"uid": True}])
def test_an_answer_without_a_uid_is_not_believed(
    svc: Any, helper: FakeHelper, answer: dict[str, Any], needs_root: None
) -> None:
    helper.answer = answer
    assert svc("create-user", "ada", stdin=GOOD)[0] == 1


def test_without_a_database_nothing_is_asked_or_made(
    svc: Any, helper: FakeHelper, tmp_path: Any, needs_root: None
) -> None:
    code, _, err = svc("create-user", "ada", "--db", str(tmp_path / "none.db"), stdin=GOOD)
    assert code == 1
    assert "svc admin migrate" in err
    assert helper.calls == []
