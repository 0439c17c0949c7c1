"""A long response has its rule applied again: now and then, and within half a second of a logout."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from unit.serving import make_user
from unit.streaming import CALLER

from svc.db import migrate
from svc.db.connect import close_database, database, open_database
from svc.domain.accounts import sessions, tokens, users
from svc.domain.principal import Caller
from svc.errors import Unauthenticated
from svc.limits import ACCESS_ENDED_S, ACCESS_RECHECK_S
from svc.web.rechecks import Recheck, has_ended


@pytest.fixture
def ada(tmp_path: Path) -> Iterator[Caller]:
    """In a session."""
    open_database(str(tmp_path / "svc.db"), create=True)
    migrate.apply(database.connection())
    user = make_user("ada", 2001)
    session, _ = sessions.begin(user.id, "192.0.2.1")
    yield replace(CALLER, user_id=user.id, name="ada", kind="session", credential=session)
    close_database()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Moves the time that the module sees."""
    now = [time.monotonic()]
    monkeypatch.setattr("svc.web.rechecks.time.monotonic", lambda: now[0])

    def move(seconds: float) -> None:
        now[0] += seconds

    return move


def refuse() -> None:
    raise Unauthenticated("a valid credential is needed")


def test_the_end_of_a_session_is_noticed_at_once(ada: Caller, clock: Callable[[float], None]) -> None:
    recheck = Recheck(ada, refuse)
    clock(ACCESS_ENDED_S + 0.1)
    recheck.apply()
    sessions.end(ada.credential)
    recheck.apply()  # not asked about without a pause
    clock(ACCESS_ENDED_S + 0.1)
    with pytest.raises(Unauthenticated):
        recheck.apply()


def test_the_whole_rule_is_applied_now_and_then(ada: Caller, clock: Callable[[float], None]) -> None:
    recheck = Recheck(ada, refuse)
    clock(ACCESS_RECHECK_S + 0.1)
    with pytest.raises(Unauthenticated):
        recheck.apply()


def test_what_ends_access(ada: Caller) -> None:
    user = users.get("ada")
    database.execute_sql(
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        " VALUES ('tok-1', ?, 'ci', '', 'x', '2026-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z')",
        (user.id,),
    )
    program = replace(ada, kind="pat", credential="tok-1")
    host = replace(ada, kind="peer", credential="")
    assert not any(map(has_ended, (ada, program, host)))
    tokens.revoke_all(user.id)
    assert [has_ended(caller) for caller in (ada, program, host)] == [False, True, False]
    users.update(user, disabled=True)
    assert all(map(has_ended, (ada, program, host)))
    users.update(user, disabled=False)
    sessions.end(ada.credential)
    assert [has_ended(caller) for caller in (ada, host)] == [True, False]
    users.update(user, provisioning=users.CLEANUP)  # its deletion began
    assert has_ended(host)


def test_a_database_that_cannot_be_read_has_ended_nothing(ada: Caller) -> None:
    close_database()
    assert not has_ended(ada)
