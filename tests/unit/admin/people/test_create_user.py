"""create-user: the row first, then the host, and every way in which that can end."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from unit.serving import make_template, make_workspace

from svc.admin.findings import fail
from svc.db.connect import close_database, open_database
from svc.db.connect import database as connected
from svc.domain.accounts import sessions, users
from svc.errors import Conflict, EngineFailed, EngineUnavailable, HostRefused, SvcError

GOOD = b"q7#fLp2z tap cup\n"
OTHER = b"another Zebra7-cup\n"


class FakeHelper:
    """Records calls and gives the answer it was told; what it makes is then the host's."""

    def __init__(self, path: str, linux: dict[str, int]) -> None:
        self.path = path
        self.linux = linux
        self.answer: dict[str, Any] | BaseException = {"uid": 4001}
        self.calls: list[tuple[Any, ...]] = []
        self.row_during_call: dict[str, Any] = {}

    def call(self, verb: str, user: str, args: dict[str, Any], *, rid: str) -> dict[str, Any]:
        self.calls.append((verb, user, args))
        self.row_during_call = row(self.path, user)
        if isinstance(self.answer, BaseException):
            raise self.answer
        if type(self.answer.get("uid")) is int:
            self.linux.setdefault(user, self.answer["uid"])
        return self.answer


@pytest.fixture
def linux(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """The Linux accounts of this host, as the rows' side sees them."""
    accounts = {"root": 0}
    for module in ("account_rows", "create_user"):
        monkeypatch.setattr(f"svc.admin.people.{module}.linux_uid", accounts.get)
    return accounts


@pytest.fixture
def helper(database: str, monkeypatch: pytest.MonkeyPatch, linux: dict[str, int]) -> FakeHelper:
    fake = FakeHelper(database, linux)

    @contextmanager
    def own_helper(_settings: Any) -> Iterator[FakeHelper]:
        yield fake

    monkeypatch.setattr("svc.admin.people.create_user.own_helper", own_helper)
    return fake


def row(path: str, name: str = "ada") -> dict[str, Any]:
    open_database(path)
    user = users.find(name)
    record = users.record(user) if user else {}
    close_database()
    return record


def audit(path: str, target: str = "ada") -> list[str]:
    open_database(path)
    found = connected.execute_sql(
        "SELECT action || ' ' || outcome FROM audit WHERE target = ?", (target,)
    ).fetchall()
    close_database()
    return [line.removeprefix("admin.create_user ") for (line,) in found]


def test_the_row_the_host_then_ready(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    code, out, err = svc("create-user", "ada", "--display-name", "Ada Lovelace", stdin=GOOD)
    assert (code, out, err) == (0, "the account ada (uid 4001) is ready\n", "")
    assert helper.calls == [("account.ensure", "ada", {"administrator": False})]
    assert helper.row_during_call["status"] == "PROVISIONING_INCOMPLETE"
    assert helper.row_during_call["note"] == "its setup began and did not end"
    record = row(helper.path)
    assert (record["status"], record["note"], record["uid"]) == ("READY", "", 4001)
    assert (record["has_password"], record["superuser"], record["display_name"]) == (
        True,
        False,
        "Ada Lovelace",
    )
    assert audit(helper.path) == ["begun", "ok"]


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


def test_a_password_may_not_hold_the_name_that_was_told_at_the_first_try(
    svc: Any, helper: FakeHelper, needs_root: None
) -> None:
    good, helper.answer = helper.answer, EngineUnavailable("the helper ended")
    assert svc("create-user", "ada", "--display-name", "Ada Lovelace", stdin=GOOD)[0] == 1
    helper.answer = good
    assert "display name" in svc("create-user", "ada", stdin=b"q7#fLp2z Lovelace\n")[2]


@pytest.mark.parametrize(
    ("name", "said"),
    [("daemon", "is a system account: uid 1 is below UID_MIN"), ("No.Such", "cannot have that name")],
)
def test_who_cannot_be_enrolled_is_not_asked_for_a_password(
    svc: Any, helper: FakeHelper, name: str, said: str, needs_root: None
) -> None:
    code, out, err = svc("create-user", name, stdin=b"")
    assert (code, out, helper.calls, row(helper.path, name)) == (1, "", [], {})
    assert said in err and "password" not in err
    assert "\nhint: sudo svc admin create-user another-name" in err


@pytest.mark.parametrize("again", [False, True])
def test_a_podman_that_does_not_start_is_said_with_the_way_out(
    svc: Any, helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, again: bool, needs_root: None
) -> None:
    if again:
        svc("create-user", "ada", stdin=GOOD)
    found = fail("storage", "Podman's records of ada are of uid 1001", "sudo -iu ada rm -f db.sql")
    monkeypatch.setattr("svc.admin.checks.accounts.storage", lambda _host: iter([found]))
    code, out, err = svc("create-user", "ada", stdin=GOOD)
    assert (code, out.endswith(", but Podman does not start\n")) == (1, True)
    assert "svc: Podman's records of ada are of uid 1001\nhint: sudo -iu ada rm -f db.sql\n" in err


@pytest.mark.parametrize("again", [False, True])
def test_an_expired_linux_account_is_not_called_ready(
    svc: Any, helper: FakeHelper, monkeypatch: pytest.MonkeyPatch, again: bool, needs_root: None
) -> None:
    if again:
        svc("create-user", "ada", stdin=GOOD)
    monkeypatch.setattr("svc_helper.root.pam.expired", lambda name: name == "ada")
    code, out, err = svc("create-user", "ada", stdin=GOOD)
    assert (code, out.endswith(", but its Linux account is expired: the service refuses it\n")) == (1, True)
    assert "hint: sudo chage --expiredate -1 ada\n" in err


@pytest.mark.parametrize("name", ["1001", "-x", "a" * 257, "ada\n", "../ada", "ada:2001", "ada%"])
def test_a_bad_name_touches_nothing(svc: Any, helper: FakeHelper, name: str, needs_root: None) -> None:
    code, _, _ = svc("create-user", "--", name, stdin=GOOD)
    assert code == 1
    assert helper.calls == []


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EngineUnavailable("the helper ended"), "PROVISIONING_INCOMPLETE"),
        (EngineFailed("Linux account: useradd ended with 1"), "PROVISIONING_CLEANUP_REQUIRED"),
        (Conflict("subordinate uids: ada and ben share them"), "PROVISIONING_CLEANUP_REQUIRED"),
    ],
)
def test_a_failure_says_what_is_left_and_again_finishes_it(
    svc: Any, helper: FakeHelper, error: SvcError, status: str, needs_root: None
) -> None:
    good, helper.answer = helper.answer, error
    code, out, err = svc("create-user", "ada", "--superuser", stdin=GOOD)
    assert (code, out) == (1, "")
    assert error.message in err
    assert "hint: fix that, then run: sudo svc admin create-user ada --superuser" in err
    record = row(helper.path)
    assert (record["status"], record["note"]) == (status, error.message)
    assert not record["has_password"]
    helper.answer = good
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    assert (row(helper.path)["status"], row(helper.path)["superuser"]) == ("READY", False)
    assert audit(helper.path) == ["begun", "failed", "begun", "ok"]


def test_an_interrupt_leaves_it_incomplete(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    helper.answer = KeyboardInterrupt()
    code, _, err = svc("create-user", "ada", stdin=GOOD)
    assert code == 130
    assert "to complete it: sudo svc admin create-user ada" in err
    assert row(helper.path)["status"] == "PROVISIONING_INCOMPLETE"


def test_a_name_that_the_host_refuses_leaves_no_row(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    helper.answer = HostRefused("Linux account: ada is a system account")
    code, _, err = svc("create-user", "ada", stdin=GOOD)
    assert code == 1
    assert "a system account" in err
    assert row(helper.path) == {}
    assert audit(helper.path) == ["begun", "refused"]


def test_an_account_that_is_whole_keeps_what_it_has(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    before = row(helper.path)
    code, out, err = svc("create-user", "ada", stdin=OTHER)
    assert (code, out) == (0, "the account ada (uid 4001) was ready before\n")
    assert "sudo svc admin set-password ada" in err
    assert row(helper.path) == before
    assert helper.calls == [("account.ensure", "ada", {"administrator": False})] * 2
    assert helper.row_during_call["status"] == "READY"


def test_what_it_would_change_of_a_whole_account_is_refused(
    svc: Any, helper: FakeHelper, needs_root: None
) -> None:
    assert svc("create-user", "ada", "--display-name", "Ada", stdin=GOOD)[0] == 0
    for flags, change in (
        (("--superuser",), "sudo svc admin edit-user ada --superuser"),
        (("--display-name", "Ben"), "sudo svc admin edit-user ada --display-name Ben"),
    ):
        code, _, err = svc("create-user", "ada", *flags, stdin=GOOD)
        assert code == 1
        assert change in err
    assert len(helper.calls) == 1
    assert svc("create-user", "ada", "--display-name", "Ada", stdin=GOOD)[0] == 0


def test_who_administers_is_roots_word_and_not_the_databases(
    svc: Any, helper: FakeHelper, tmp_path: Path, needs_root: None
) -> None:
    assert svc("create-user", "ada", "--superuser", stdin=GOOD)[0] == 0
    _, _, err = svc("create-user", "ada")
    assert "sudo svc admin create-user ada --superuser" in err
    assert svc("create-user", "ada", "--superuser")[0] == 0
    (tmp_path / "state").mkdir(exist_ok=True)
    (tmp_path / "state" / "enrolled").write_text("ada 4002 administrator\nben 4001 administrator\n")
    svc("create-user", "ada")
    (tmp_path / "state" / "enrolled").write_text("ada 4001 administrator\n")
    _, _, err = svc("create-user", "ada")
    assert "--superuser" not in err
    assert [call[-1]["administrator"] for call in helper.calls] == [True, False, True, False, True]


def test_root_is_there_and_is_never_the_helpers(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    code, out, err = svc("create-user", "root", stdin=GOOD)
    assert (code, out) == (0, "the account root (uid 0) was ready before\n")
    assert "sudo svc admin set-password root" in err
    open_database(helper.path)
    users.update(users.get("root"), name="toor")
    close_database()
    code, _, err = svc("create-user", "root", stdin=GOOD)
    assert code == 1
    assert "hint: sudo svc admin migrate" in err
    assert helper.calls == []


@pytest.mark.parametrize("now", [None, 4009])
@pytest.mark.parametrize("uid", [4001, 4009])
def test_the_linux_account_went_or_is_another(
    svc: Any, helper: FakeHelper, linux: dict[str, int], now: int | None, uid: int, needs_root: None
) -> None:
    """Also when useradd gives the new account the uid that the former one had."""
    assert svc("create-user", "ada", "--superuser", "--display-name", "Ada", stdin=GOOD)[0] == 0
    open_database(helper.path)
    former = users.get("ada")
    make_workspace(former.id, make_template(former.id))
    sessions.begin(former.id, "192.0.2.1")
    close_database()
    linux.pop("ada")
    if now is not None:
        linux["ada"] = now
    helper.answer = {"uid": now or uid}
    code, _, err = svc("create-user", "ada", stdin=OTHER)
    assert code == 0
    assert "is now retired as ada:4001; ada inherits nothing from it" in err
    assert "sudo svc admin list-users" in err
    record, retired = row(helper.path), row(helper.path, "ada:4001")
    assert (record["uid"], record["superuser"], record["status"]) == (now or uid, False, "READY")
    assert (record["display_name"], retired["display_name"]) == ("", "Ada")
    assert (retired["uid"], retired["status"]) == (None, "PROVISIONING_CLEANUP_REQUIRED")
    assert retired["note"].endswith("on record: 1 workspace and 1 template")
    assert audit(helper.path, "ada:4001") == ["admin.retire_user ok"]
    open_database(helper.path)
    assert users.end_access(former.id) == (0, 0)


def test_a_cut_after_useradd_does_not_make_the_former_account_the_new_ones(
    svc: Any, helper: FakeHelper, linux: dict[str, int], needs_root: None
) -> None:
    """The Linux account is there again with the same uid, and only the row knows that it is another."""
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    linux.pop("ada")
    helper.answer = KeyboardInterrupt()
    assert svc("create-user", "ada", stdin=OTHER)[0] == 130
    linux["ada"] = 4001
    helper.answer = {"uid": 4001}
    assert svc("create-user", "ada", stdin=OTHER)[0] == 0
    assert row(helper.path)["uid"] == 4001
    assert row(helper.path, "ada:4001")["uid"] is None


def test_a_uid_of_somebody_who_is_gone_is_given_again(
    svc: Any, helper: FakeHelper, linux: dict[str, int], needs_root: None
) -> None:
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    linux.pop("ada")
    code, _, err = svc("create-user", "ben", stdin=OTHER)
    assert code == 0
    assert "is now retired as ada:4001; ben inherits nothing from it" in err
    assert (row(helper.path, "ben")["uid"], row(helper.path)) == (4001, {})


def test_a_uid_of_another_account_is_not_taken_over(svc: Any, helper: FakeHelper, needs_root: None) -> None:
    assert svc("create-user", "ada", stdin=GOOD)[0] == 0
    code, _, err = svc("create-user", "ben", stdin=GOOD)
    assert code == 1
    assert "uid 4001 belongs to the service account ada" in err
    record = row(helper.path, "ben")
    assert (record["status"], record["uid"]) == ("PROVISIONING_CLEANUP_REQUIRED", None)
    assert row(helper.path)["status"] == "READY"
    assert audit(helper.path, "ben") == ["begun", "failed"]


@pytest.mark.parametrize("answer", [{}, {"uid": "4001"}, {"uid": True}, {"uid": 0}, {"uid": -1}])
def test_an_answer_without_a_uid_is_not_believed(
    svc: Any, helper: FakeHelper, answer: dict[str, Any], needs_root: None
) -> None:
    helper.answer = answer
    assert svc("create-user", "ada", stdin=GOOD)[0] == 1
    assert json.dumps(row(helper.path)["uid"]) == "null"


def test_without_a_database_nothing_is_asked_or_made(
    svc: Any, helper: FakeHelper, tmp_path: Any, needs_root: None
) -> None:
    code, _, err = svc("create-user", "ada", "--db", str(tmp_path / "none.db"), stdin=GOOD)
    assert code == 1
    assert "svc admin migrate" in err
    assert helper.calls == []
