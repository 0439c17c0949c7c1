"""Sessions: both secrets, both ends, and nothing in the database that opens one."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from unit.configuring import configured

from svc.db.connect import database
from svc.domain.accounts import sessions, users
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import NotFound, StorageFull
from svc.host.ids import after, now
from svc.limits import (
    SESSION_IDLE_S,
    SESSION_IDLE_SUPERUSER_S,
    SESSION_MAX_S,
    SESSION_MAX_SUPERUSER_S,
    SESSIONS_PER_USER,
)

HERE = "192.0.2.1"


def count() -> int:
    return int(database.execute_sql("SELECT count(*) FROM sessions").fetchone()[0])


def column(name: str) -> Any:
    return database.execute_sql(f"SELECT {name} FROM sessions").fetchone()[0]


def aged(**seconds: int) -> None:
    """Move the times of all sessions by so many seconds."""
    for name, by in seconds.items():
        database.execute_sql(f"UPDATE sessions SET {name} = ?", (after(column(name), by),))


def test_both_secrets_open_it(ada: Caller, bob: Caller) -> None:
    """ "both needed" (T7)."""
    session, secrets = sessions.begin(ada.user_id, HERE)
    _, others = sessions.begin(bob.user_id, HERE)
    assert sessions.user_of(secrets.cookie, secrets.header) == (session, ada.user_id)
    for cookie, header in (
        (secrets.cookie, ""),
        (secrets.cookie, others.header),
        (others.cookie, secrets.header),
        (secrets.cookie, secrets.header + " "),
        (secrets.cookie, secrets.header.upper()),
        (secrets.header, secrets.cookie),
        ("", secrets.header),
        ("", ""),
    ):
        assert sessions.user_of(cookie, header) is None
    assert sessions.user_of(secrets.cookie, secrets.header) == (session, ada.user_id)


def test_a_cookie_that_we_did_not_sign(ada: Caller) -> None:
    _, secrets = sessions.begin(ada.user_id, HERE)
    value, _, signature = secrets.cookie.partition(".")
    for cookie in (
        value, f"{value}.", f"{value}.{signature[:-1]}", f".{signature}", f"A{value}.{signature}",
        f"{value}.{signature},x", "\x80.\xff",
    ):  # fmt: skip
        assert sessions.user_of(cookie, secrets.header) is None
    configured(secret=b"another secret that is long enough")
    assert sessions.user_of(secrets.cookie, secrets.header) is None


def test_the_signature_of_a_digest_alone_opens_nothing(ada: Caller) -> None:
    """Who reads the database has neither secret, and who has the key too only half of them."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    forged = sessions._signer().sign(column("cookie_hash")).decode()
    assert sessions.user_of(forged, secrets.header) is None
    assert sessions.user_of(secrets.cookie, column("header_hash")) is None


def test_the_database_has_digests_only(ada: Caller) -> None:
    """ "DB stores SHA-256 of id"; each secret has 256 bits."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    value = secrets.cookie.partition(".")[0]
    row = str(database.execute_sql("SELECT * FROM sessions").fetchone())
    for secret in (value, secrets.header, secrets.cookie):
        assert secret not in row
    assert len(value) == len(secrets.header) == 43  # 32 bytes
    assert value != secrets.header
    assert secrets.header not in repr(secrets)
    assert secrets.cookie not in str(secrets)


def test_a_new_id_at_each_login(ada: Caller) -> None:
    """ "new id at login"."""
    created = [sessions.begin(ada.user_id, HERE) for _ in range(3)]
    assert len({session for session, _ in created}) == 3
    assert len({secret for _, secrets in created for secret in secrets}) == 6


@pytest.mark.parametrize(
    ("superuser", "idle_s", "most_s"),
    [(False, SESSION_IDLE_S, SESSION_MAX_S), (True, SESSION_IDLE_SUPERUSER_S, SESSION_MAX_SUPERUSER_S)],
)
def test_its_ends(ada: Caller, superuser: bool, idle_s: int, most_s: int) -> None:
    """12 hours idle and 7 days at most; "superuser 2 h, 24 h", by what the user is now."""
    session, secrets = sessions.begin(ada.user_id, HERE)
    users.update(users.get("ada"), superuser=superuser)
    record = sessions.get(session)
    assert record["idle_ends_at"] == after(record["last_used_at"], idle_s)
    assert record["ends_at"] == after(record["created_at"], most_s)
    aged(last_used_at=-idle_s + 30)
    assert sessions.user_of(*secrets)
    aged(created_at=-most_s + 30)
    assert sessions.user_of(*secrets)
    assert sessions.get(session)["idle_ends_at"] == sessions.get(session)["ends_at"]
    aged(created_at=-31)
    assert sessions.user_of(*secrets) is None
    assert count() == 0  # an ended one's row goes with it
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-idle_s)
    assert sessions.user_of(*secrets) is None
    assert count() == 0


def test_a_superusers_session_is_shorter_from_the_moment_they_are_one(ada: Caller) -> None:
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-SESSION_IDLE_SUPERUSER_S)
    users.update(users.get("ada"), superuser=True)
    assert sessions.user_of(*secrets) is None


def test_an_end_needs_no_right_header(ada: Caller) -> None:
    """The row of an ended session goes although who came has only the cookie."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-SESSION_IDLE_S)
    assert sessions.user_of(secrets.cookie, "") is None
    assert count() == 0


def test_a_clock_set_back_revives_nothing(ada: Caller) -> None:
    """ "clock back" (row 14): what began in the future, more than a minute of it, is no session."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(created_at=50, last_used_at=50)
    assert sessions.user_of(*secrets)
    aged(created_at=20)
    assert sessions.user_of(*secrets) is None
    assert count() == 0


def test_a_use_is_noted_once_a_minute(ada: Caller) -> None:
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-59)
    before = column("last_used_at")
    assert sessions.user_of(*secrets)
    assert column("last_used_at") == before
    aged(last_used_at=-2)
    assert sessions.user_of(*secrets)
    assert column("last_used_at") > after(now(), -5)


def test_a_wrong_header_is_no_use(ada: Caller) -> None:
    """Who has only the cookie does not keep a session alive."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-3600)
    before = column("last_used_at")
    assert sessions.user_of(secrets.cookie, "x") is None
    assert column("last_used_at") == before


def test_a_use_in_the_future_prolongs_nothing(ada: Caller) -> None:
    _, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=3600)
    assert sessions.user_of(*secrets)
    assert column("last_used_at") < after(now(), 5)


def test_a_full_disk_keeps_nobody_out(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    session, secrets = sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-3600)
    real = database.execute_sql

    def full(sql: str, *rest: Any) -> Any:
        if sql.startswith(("UPDATE", "DELETE")):
            raise StorageFull("the disk is full")
        return real(sql, *rest)

    monkeypatch.setattr(database, "execute_sql", full)
    assert sessions.user_of(*secrets) == (session, ada.user_id)
    real("UPDATE sessions SET last_used_at = ?", (after(now(), -SESSION_IDLE_S),))
    assert sessions.user_of(*secrets) is None


def test_the_oldest_of_too_many_ends(ada: Caller, bob: Caller) -> None:
    _, others = sessions.begin(bob.user_id, HERE)
    created = [sessions.begin(ada.user_id, HERE)[1] for _ in range(SESSIONS_PER_USER + 2)]
    assert [sessions.user_of(*secrets) is not None for secrets in created] == [False] * 2 + [
        True
    ] * SESSIONS_PER_USER
    assert sessions.user_of(*others)


def test_a_login_clears_away_what_has_ended(ada: Caller, bob: Caller, boss: Caller) -> None:
    """Of everybody: most browsers never come back to a session that is over."""
    for user in (ada, bob, boss):
        sessions.begin(user.user_id, HERE)
    sessions.begin(ada.user_id, "gone")
    database.execute_sql(
        "UPDATE sessions SET last_used_at = ? WHERE address != 'gone'",
        (after(now(), -SESSION_IDLE_SUPERUSER_S - 1),),
    )
    database.execute_sql(
        "UPDATE sessions SET created_at = ? WHERE address = 'gone'", (after(now(), -SESSION_MAX_S),)
    )
    sessions.begin(bob.user_id, HERE)
    left = database.execute_sql("SELECT user_id, address FROM sessions ORDER BY rowid").fetchall()
    assert left == [(ada.user_id, HERE), (bob.user_id, HERE), (bob.user_id, HERE)]


def test_ending(ada: Caller, bob: Caller) -> None:
    session, secrets = sessions.begin(ada.user_id, HERE)
    _, second = sessions.begin(ada.user_id, HERE)
    _, others = sessions.begin(bob.user_id, HERE)
    sessions.end(session)
    assert sessions.user_of(*secrets) is None
    assert sessions.user_of(*second)
    with pytest.raises(NotFound):
        sessions.get(session)
    sessions.begin(ada.user_id, HERE)
    assert sessions.end_all(ada.user_id) == 2
    assert sessions.user_of(*second) is None
    assert sessions.user_of(*others)
    assert sessions.end_all(ada.user_id) == 0


def test_the_record(ada: Caller) -> None:
    session, _ = sessions.begin(ada.user_id, HERE)
    record = sessions.get(session)
    assert set(record) == {
        "id", "address", "browser", "created_at", "last_used_at", "idle_ends_at", "ends_at",
    }  # fmt: skip
    assert (record["id"], record["address"]) == (session, HERE)


# --- one's own, listed and ended -----------------------------------------------------------


def listed(caller: Caller, **page: Any) -> list[str]:
    return [record["id"] for record in sessions.page_of(caller, Page(**page))["items"]]


def test_ones_own_are_listed(ada: Caller, bob: Caller) -> None:
    """Each with where and when, and which one asks; no secret, and nobody else's."""
    first, _ = sessions.begin(ada.user_id, HERE, "Firefox on Linux")
    aged(created_at=-100, last_used_at=-100)
    second, _ = sessions.begin(ada.user_id, "2001:db8::1", "curl")
    sessions.begin(bob.user_id, HERE)
    here = dataclasses.replace(ada, kind="session", credential=first)
    assert listed(here) == [second, first]
    record = sessions.page_of(here, Page())["items"][1]
    assert (record["browser"], record["address"], record["current"]) == ("Firefox on Linux", HERE, True)
    assert set(record) == set(sessions.get(first)) | {"current"}
    assert not any(record["current"] for record in sessions.page_of(ada, Page())["items"])  # the host socket
    assert listed(here, q="firefox") == listed(here, q=HERE) == [first]
    assert listed(here, sort="created_at") == [first, second]


def test_ended_ones_are_not_listed(ada: Caller) -> None:
    sessions.begin(ada.user_id, HERE)
    aged(last_used_at=-SESSION_IDLE_S)
    assert listed(ada) == []


def test_one_is_ended(ada: Caller, bob: Caller) -> None:
    session, secrets = sessions.begin(ada.user_id, HERE)
    for caller, ref in ((bob, session), (ada, "ses-00000000"), (ada, "")):
        with pytest.raises(NotFound):
            sessions.end_own(caller, ref)
    assert sessions.user_of(*secrets)
    sessions.end_own(ada, session)
    assert sessions.user_of(*secrets) is None
    row = database.execute_sql("SELECT action, target, outcome FROM audit ORDER BY id DESC").fetchone()
    assert row == ("auth.session_end", session, "ok")


def test_all_others_are_ended(ada: Caller, bob: Caller) -> None:
    kept = sessions.begin(ada.user_id, HERE)[0]
    sessions.begin(ada.user_id, HERE)
    others = sessions.begin(bob.user_id, HERE)[1]
    here = dataclasses.replace(ada, kind="session", credential=kept)
    assert (sessions.end_others(here), listed(here)) == (1, [kept])
    assert sessions.end_others(here) == 0
    assert sessions.end_others(ada) == 1  # on the host socket: all
    assert sessions.user_of(*others)


def test_background_is_no_use(ada: Caller) -> None:
    """An open tab asks and asks; the session becomes idle all the same."""
    _, secrets = sessions.begin(ada.user_id, HERE)
    for _ in range(3):
        aged(last_used_at=-SESSION_IDLE_S // 4)
        used = column("last_used_at")
        assert sessions.user_of(*secrets, background=True)
        assert column("last_used_at") == used
    aged(last_used_at=-SESSION_IDLE_S // 4)
    assert sessions.user_of(*secrets, background=True) is None
