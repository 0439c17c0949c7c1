"""App sessions: what a cookie opens, and everything that ends it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from unit.domain.apps.conftest import LAB

from svc.db.connect import database
from svc.domain.accounts import sessions, users
from svc.domain.accounts.tickets import Holder
from svc.domain.apps import visits
from svc.domain.principal import Caller
from svc.host.ids import after, now
from svc.limits import APP_SESSIONS_PER_USER, SESSION_IDLE_S, SESSION_MAX_S


def begin(caller: Caller) -> str:
    """Sign the caller in by a link; the cookie."""
    return visits.begin(Holder("peer", "", caller.user_id), LAB, "192.0.2.7")[1]


def test_a_cookie_opens_its_app_at_its_address(ada: Caller, workspace: str) -> None:
    cookie = begin(ada)
    found = visits.find(cookie, LAB)
    assert found and found.user_id == ada.user_id
    assert cookie not in "\n".join(database.connection().iterdump())
    for other in (
        LAB._replace(port="login"),
        LAB._replace(workspace_id="ws-aaaaaaaa"),
        LAB._replace(origin=f"{LAB.origin}0"),
    ):
        assert visits.find(cookie, other) is None
    assert visits.find(cookie[:-1], LAB) is None
    assert visits.find("x" * 43, LAB) is None


@pytest.mark.parametrize(
    ("statement", "age_s"),
    [
        ("UPDATE users SET disabled = 1 WHERE ? <> ''", 0),
        ("DELETE FROM ports WHERE name = 'lab' AND ? <> ''", 0),
        ("DELETE FROM workspaces WHERE ? <> ''", 0),
        ("UPDATE app_sessions SET created_at = ?", SESSION_MAX_S + 1),
        ("UPDATE app_sessions SET last_used_at = ?", SESSION_IDLE_S + 1),
        ("UPDATE app_sessions SET created_at = ?", -3600),
    ],
)
def test_what_ends_it(ada: Caller, workspace: str, statement: str, age_s: int) -> None:
    cookie = begin(ada)
    database.execute_sql(statement, (after(now(), -age_s),))
    assert visits.find(cookie, LAB) is None


def test_a_new_password_ends_it(ada: Caller, workspace: str) -> None:
    cookie = begin(ada)
    user = users.find_by_id(ada.user_id)
    assert user
    users.set_password(user, "hash", 20)
    assert visits.find(cookie, LAB) is None


def test_it_ends_with_the_session_that_it_came_from(ada: Caller, workspace: str) -> None:
    session, _ = sessions.begin(ada.user_id, "192.0.2.1")
    _, cookie = visits.begin(Holder("session", session, ada.user_id), LAB, "192.0.2.1")
    assert visits.find(cookie, LAB)
    sessions.end_own(replace(ada, kind="session"), session)
    assert visits.find(cookie, LAB) is None


def test_an_idle_session_has_ended_before_its_row_is_gone(ada: Caller, workspace: str) -> None:
    session, _ = sessions.begin(ada.user_id, "192.0.2.1")
    visit, cookie = visits.begin(Holder("session", session, ada.user_id), LAB, "192.0.2.1")
    database.execute_sql("UPDATE sessions SET last_used_at = ?", (after(now(), -SESSION_IDLE_S - 1),))
    assert visits.find(cookie, LAB) is None
    assert visits.ended([visit]) == [visit]


def test_leaving(ada: Caller, workspace: str) -> None:
    cookie, other = begin(ada), begin(ada)
    visits.end(cookie, LAB)
    visits.end("nothing", LAB)
    assert visits.find(cookie, LAB) is None
    assert visits.find(other, LAB)


def test_the_oldest_ends_for_one_too_many(ada: Caller, bob: Caller, workspace: str) -> None:
    first, second = begin(ada), begin(ada)
    others = begin(bob)
    for _ in range(APP_SESSIONS_PER_USER - 1):
        begin(ada)
    assert visits.find(first, LAB) is None
    assert visits.find(second, LAB)
    assert visits.find(others, LAB)


def test_use_keeps_it(ada: Caller, workspace: str) -> None:
    cookie = begin(ada)
    database.execute_sql("UPDATE app_sessions SET last_used_at = ?", (after(now(), -SESSION_IDLE_S + 60),))
    assert visits.find(cookie, LAB, background=True)
    (idle,) = database.execute_sql("SELECT last_used_at FROM app_sessions").fetchall()
    assert idle[0] < after(now(), -SESSION_IDLE_S + 90), "an open tab is not a person who uses it"
    assert visits.find(cookie, LAB)
    (row,) = database.execute_sql("SELECT last_used_at FROM app_sessions").fetchall()
    assert row[0] > after(now(), -5)
