"""One-time tickets: one use, one purpose, one subject, 30 seconds, and their credential's end."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from svc.db.connect import close_database, database
from svc.domain.accounts import sessions, tickets, tokens, users
from svc.domain.principal import Caller
from svc.errors import TooManyRequests
from svc.host.ids import after, now
from svc.limits import TICKET_S, TICKETS_PER_USER

WHAT = ("fs.download", "notes.txt")


def in_session(caller: Caller) -> Caller:
    """The caller in a new browser session."""
    session, _ = sessions.begin(caller.user_id, "192.0.2.1")
    return replace(caller, kind="session", credential=session)


def count() -> int:
    return int(database.execute_sql("SELECT count(*) FROM tickets").fetchone()[0])


def test_it_opens_once(ada: Caller) -> None:
    caller = in_session(ada)
    secret = tickets.issue(caller, *WHAT).secret
    assert tickets.redeem(secret, *WHAT) == ("session", caller.credential, ada.user_id)
    assert tickets.redeem(secret, *WHAT) is None
    assert count() == 0


def test_the_database_does_not_have_it(ada: Caller) -> None:
    ticket = tickets.issue(ada, *WHAT)
    assert ticket.secret not in "\n".join(database.connection().iterdump())
    assert ticket.secret[12:] not in repr(ticket)


@pytest.mark.parametrize("stolen", [("fs.archive", "notes.txt"), ("fs.download", "other.txt"), ("", "")])
def test_for_something_else_it_is_used_up(ada: Caller, stolen: tuple[str, str]) -> None:
    secret = tickets.issue(ada, *WHAT).secret
    assert tickets.redeem(secret, *stolen) is None
    assert tickets.redeem(secret, *WHAT) is None


@pytest.mark.parametrize("by_s", [-TICKET_S, -TICKET_S - 1, 1])
def test_out_of_its_time(ada: Caller, by_s: int) -> None:
    """Expired; or the clock was set back."""
    secret = tickets.issue(ada, *WHAT).secret
    database.execute_sql("UPDATE tickets SET expires_at = ?", (after(now(), TICKET_S + by_s),))
    assert tickets.redeem(secret, *WHAT) is None


@pytest.mark.parametrize("wrong", ["", "x", "svc_tkt_", "svc_tkt_" + "g" * 64, "svc_pat_" + "a" * 64])
def test_what_is_no_ticket(ada: Caller, wrong: str) -> None:
    assert tickets.redeem(wrong, *WHAT) is None


def test_it_ends_with_its_session(ada: Caller) -> None:
    one, other = in_session(ada), in_session(ada)
    first, second = tickets.issue(one, *WHAT).secret, tickets.issue(other, *WHAT).secret
    sessions.end(one.credential)
    assert tickets.redeem(first, *WHAT) is None
    assert tickets.redeem(second, *WHAT) is not None


def test_it_ends_with_its_token(ada: Caller) -> None:
    token = tokens.create(ada, "laptop")
    secret = tickets.issue(replace(ada, kind="pat", credential=token["id"]), *WHAT).secret
    tokens.revoke(ada, "laptop")
    assert tickets.redeem(secret, *WHAT) is None


def test_it_ends_with_its_account(ada: Caller, bob: Caller) -> None:
    secrets = [tickets.issue(caller, *WHAT).secret for caller in (ada, bob)]
    users.update(users.get("ada"), disabled=True)
    users.update(users.get("ada"), disabled=False)
    assert [tickets.redeem(secret, *WHAT) is None for secret in secrets] == [True, False]


def test_unused_ones_are_limited(ada: Caller, bob: Caller) -> None:
    for _ in range(TICKETS_PER_USER):
        tickets.issue(ada, *WHAT)
    with pytest.raises(TooManyRequests) as raised:
        tickets.issue(ada, *WHAT)
    assert raised.value.retry_after_s == TICKET_S
    tickets.issue(bob, *WHAT)
    database.execute_sql("UPDATE tickets SET expires_at = ?", (now(),))
    tickets.issue(ada, *WHAT)
    assert count() == 1  # what expired is gone


def test_of_a_replay_in_parallel_one_wins(ada: Caller) -> None:
    secret = tickets.issue(ada, *WHAT).secret
    begin = threading.Barrier(8)
    found: list[Any] = []

    def use() -> None:
        begin.wait(30)
        try:
            found.append(tickets.redeem(secret, *WHAT))
        finally:
            close_database()

    threads = [threading.Thread(target=use) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert sum(holder is not None for holder in found) == 1
