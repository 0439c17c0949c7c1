"""Changing an account: who may, and what ends with it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from unit.serving import FarEnd, caller_of, make_user

from svc.db.connect import database, write
from svc.domain.accounts import sessions, tokens, user_edits, users
from svc.domain.principal import Caller
from svc.errors import AdminCommandOnly, AdminOnly, Conflict, EngineUnavailable, NotFound, ValidationFailed
from svc.limits import PASSWORD_MIN_SUPERUSER


@pytest.fixture
def root(far: FarEnd) -> Caller:
    return caller_of(make_user("root", 0, superuser=True), far)


def with_access(caller: Caller, length: int | None = 12) -> None:
    """A password, a session and a token."""
    users.update(users.get(caller.name), password_hash="v1$hash", password_length=length)
    sessions.begin(caller.user_id, "192.0.2.1")
    tokens.create(caller, "ci")


def access_of(caller: Caller) -> tuple[int, int]:
    """How many sessions and active tokens there are."""
    [sessions_left] = database.execute_sql(
        "SELECT count(*) FROM sessions WHERE user_id = ?", (caller.user_id,)
    ).fetchone()
    return sessions_left, tokens.page_of(caller, users.Page(status=("active",)))["total"]


def marks(far: FarEnd) -> list[tuple[str | None, bool]]:
    return [
        (call.user, call.args["administrator"])
        for call in far.asked()
        if call.verb.name == "account.mark"
    ]  # fmt: skip


def audit_rows() -> list[tuple[str, str, str, dict[str, Any]]]:
    rows = database.execute_sql(
        "SELECT action, target, outcome, detail_json FROM audit WHERE action LIKE 'user.%' ORDER BY id"
    )
    return [(*row[:3], json.loads(row[3])) for row in rows]


# --- the display name -----------------------------------------------------------------------


def test_everybody_has_their_own_name(ada: Caller) -> None:
    record = user_edits.edit(ada, "ada", {"display_name": " Ada Lovelace "})
    assert record["display_name"] == users.get("ada").display_name == "Ada Lovelace"
    assert audit_rows() == [("user.edit", "ada", "ok", {"display_name": "Ada Lovelace"})]


def test_a_name_ends_nothing(ada: Caller) -> None:
    with_access(ada)
    user_edits.edit(ada, "ada", {"display_name": "Ada"})
    assert access_of(ada) == (1, 1)


def test_nothing_to_change_is_no_change(ada: Caller) -> None:
    before = users.record(users.get("ada"))
    assert user_edits.edit(ada, "ada", {}) == before
    assert audit_rows() == []


def test_a_bad_name_changes_nothing_else(boss: Caller, ada: Caller) -> None:
    with pytest.raises(ValidationFailed):
        user_edits.edit(boss, "ada", {"display_name": "a\nb", "disabled": True})
    assert not users.get("ada").disabled


@pytest.mark.parametrize("changes", [{"display_name": "x"}, {"disabled": True}, {"superuser": True}, {}])
def test_another_s_account_is_not_found(ada: Caller, bob: Caller, changes: dict[str, Any]) -> None:
    """The answer for one that exists is that for one that does not."""
    said = []
    for name in ("bob", "nobody"):
        with pytest.raises(NotFound) as missing:
            user_edits.edit(ada, name, changes)
        said.append((missing.value.message.replace(name, "NAME"), missing.value.hint))
    assert said[0] == said[1]
    with pytest.raises(NotFound):
        user_edits.require_own(ada, "bob")


def test_administrators_change_anybody_s(boss: Caller, root: Caller, ada: Caller) -> None:
    assert user_edits.edit(boss, "ada", {"display_name": "A"})["display_name"] == "A"
    assert user_edits.edit(root, "boss", {"display_name": "B"})["display_name"] == "B"
    assert user_edits.edit(boss, "root", {"display_name": "R"})["display_name"] == "R"
    with pytest.raises(NotFound):
        user_edits.edit(boss, "nobody", {"display_name": "x"})


# --- disabling --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["peer", "session"])
def test_disabling_ends_sessions_and_tokens(boss: Caller, ada: Caller, kind: str) -> None:
    with_access(ada)
    boss = dataclasses.replace(boss, kind=kind)
    assert user_edits.edit(boss, "ada", {"disabled": True})["status"] == "DISABLED"
    assert access_of(ada) == (0, 0)
    assert user_edits.edit(boss, "ada", {"disabled": False})["status"] == "READY"
    assert access_of(ada) == (0, 0)
    assert [row[3] for row in audit_rows()] == [
        {"disabled": disabled, "target_owner": "ada"} for disabled in (True, False)
    ]


def test_what_cannot_be_ended_leaves_the_account_as_it_was(
    boss: Caller, ada: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One transaction: never disabled with its tokens alive, never the reverse."""
    with_access(ada)

    def fail(_user_id: int) -> int:
        raise EngineUnavailable("injected")

    monkeypatch.setattr(users.tokens, "revoke_all", fail)
    with pytest.raises(EngineUnavailable):
        user_edits.edit(boss, "ada", {"disabled": True})
    assert not users.get("ada").disabled
    assert access_of(ada) == (1, 1)
    assert audit_rows() == []


@pytest.mark.parametrize("key", ["superuser", "disabled"])
@pytest.mark.parametrize("value", [True, False])
def test_the_flags_are_administrators_to_change(ada: Caller, key: str, value: bool) -> None:
    with pytest.raises(AdminOnly):
        user_edits.edit(ada, "ada", {"display_name": "x", key: value})
    assert users.get("ada").display_name == ""


def test_a_superuser_s_token_changes_no_flag(boss: Caller, ada: Caller) -> None:
    token = dataclasses.replace(boss, kind="pat", superuser=False)
    with pytest.raises(NotFound):
        user_edits.edit(token, "ada", {"disabled": True})
    with pytest.raises(AdminOnly):
        user_edits.edit(token, "boss", {"disabled": False})


def test_nobody_disables_themselves(boss: Caller, root: Caller) -> None:
    for caller in (boss, root):
        with pytest.raises(Conflict):
            user_edits.edit(caller, caller.name, {"disabled": True})
    user_edits.edit(boss, "boss", {"disabled": False})


@pytest.mark.parametrize("changes", [{"disabled": True}, {"superuser": False}])
def test_root_stays(boss: Caller, root: Caller, changes: dict[str, Any]) -> None:
    for caller in (boss, root):
        with pytest.raises(Conflict):
            user_edits.edit(caller, "root", changes)
    record = users.record(users.get("root"))
    assert (record["superuser"], record["disabled"]) == (True, False)


def test_root_is_no_business_of_the_helper(boss: Caller, root: Caller, far: FarEnd) -> None:
    assert user_edits.edit(boss, "root", {"superuser": True, "display_name": "R"})["display_name"] == "R"
    assert marks(far) == []


# --- the superuser flag -----------------------------------------------------------------------


def set_role(name: str, superuser: bool) -> dict[str, Any]:
    """As `svc admin edit-user`; the record."""
    with write():
        user_edits.apply(users.get(name), {"superuser": superuser})
    return users.record(users.get(name))


def test_no_request_changes_the_flag(root: Caller, boss: Caller, ada: Caller, far: FarEnd) -> None:
    for caller, name, wanted in ((boss, "ada", True), (root, "boss", False), (boss, "boss", False)):
        with pytest.raises(AdminCommandOnly) as refused:
            user_edits.edit(caller, name, {"superuser": wanted, "display_name": "x"})
        option = "--superuser" if wanted else "--no-superuser"
        assert refused.value.hint == f"sudo svc admin edit-user {name} {option}"
        assert users.get(name).display_name == ""
    assert user_edits.edit(boss, "ada", {"superuser": False})["superuser"] is False
    assert marks(far) == []


def test_a_role_ends_sessions(boss: Caller, ada: Caller) -> None:
    with_access(ada, PASSWORD_MIN_SUPERUSER)
    record = set_role("ada", True)
    assert (record["superuser"], record["password_closed"]) == (True, False)
    assert access_of(ada) == (0, 1)  # a long enough password: the token stays, the session's length does not
    with_access(boss)
    assert set_role("boss", False)["superuser"] is False
    assert access_of(boss) == (0, 1)


@pytest.mark.parametrize(
    ("length", "closed"), [(None, True), (8, True), (11, True), (12, False), (64, False)]
)
def test_a_password_too_short_for_an_administrator_is_closed(
    boss: Caller, ada: Caller, length: int | None, closed: bool
) -> None:
    with_access(ada, length)
    assert set_role("ada", True)["password_closed"] is closed
    assert access_of(ada) == (0, 0 if closed else 1)
    assert set_role("ada", False)["password_closed"] is False, "it is long enough for a user"
    assert access_of(ada) == (0, 0 if closed else 1)


def test_no_password_is_not_closed(boss: Caller, ada: Caller) -> None:
    tokens.create(ada, "ci")
    assert set_role("ada", True)["password_closed"] is False
    assert access_of(ada) == (0, 1)


def test_the_same_again_ends_nothing(ada: Caller) -> None:
    set_role("ada", True)
    with_access(ada, 8)
    set_role("ada", True)
    assert access_of(ada) == (1, 1)
