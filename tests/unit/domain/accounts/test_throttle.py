"""How often a login may be wrong: per user, per address, whatever the clock and however many at once."""

from __future__ import annotations

import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import make_user

from svc.db.connect import close_database, database
from svc.domain.accounts import throttle
from svc.errors import TooManyRequests
from svc.host import ids
from svc.limits import (
    LOGIN_FAILURES_MAX,
    LOGIN_PLACE_FAILURES,
    LOGIN_PLACE_S,
    LOGIN_PLACES_PER_USER,
    LOGIN_WINDOW_S,
)

HERE, THERE = "192.0.2.1", "198.51.100.2"


class Clock:
    """The time that rows get, moved by the test."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC)

    def now(self) -> str:
        return ids.after(self.at.isoformat(), 0)

    def move(self, seconds: float) -> None:
        self.at += timedelta(seconds=seconds)


@pytest.fixture
def clock(db: str, monkeypatch: pytest.MonkeyPatch) -> Clock:
    moved = Clock()
    monkeypatch.setattr(throttle, "now", moved.now)
    return moved


def wait_s(name: str = "ada", address: str = HERE) -> int:
    """Try; 0 when the try was let in."""
    try:
        throttle.enter(name, address)
    except TooManyRequests as refused:
        assert refused.retryable
        assert refused.retry_after_s
        return refused.retry_after_s
    return 0


def tries(count: int, name: str = "ada", address: str = HERE) -> None:
    assert [wait_s(name, address) for _ in range(count)] == [0] * count


def failed(name: str = "ada") -> int:
    return int(database.execute_sql("SELECT failed_logins FROM users WHERE name = ?", (name,)).fetchone()[0])


def rows() -> list[Any]:
    return list(database.execute_sql("SELECT subject, at FROM login_failures ORDER BY rowid"))


def test_five_failures_of_a_user_from_anywhere_are_enough(clock: Clock) -> None:
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, "ada", f"192.0.2.{number}")
    assert wait_s("ada", THERE) == LOGIN_WINDOW_S
    tries(1, "bob", THERE)


def test_five_failures_of_an_address_with_any_names_are_enough(clock: Clock) -> None:
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, f"user{number}", HERE)
    assert wait_s("another", HERE) == LOGIN_WINDOW_S
    tries(1, "user0", THERE)


def test_refused_tries_are_not_counted(clock: Clock) -> None:
    make_user("ada", 2001)
    tries(LOGIN_FAILURES_MAX)
    before = rows()
    for _ in range(20):
        assert wait_s("ada", HERE)
        assert wait_s("ada", THERE)
        assert wait_s("bob", HERE)
    assert rows() == before
    assert failed() == LOGIN_FAILURES_MAX
    tries(1, "bob", THERE)


@pytest.mark.parametrize("age_s", [0, 0.001, 1, 299.75, 300, 899.999])
def test_retry_after_is_right_to_the_second(clock: Clock, age_s: float) -> None:
    tries(1)
    clock.move(age_s)
    tries(LOGIN_FAILURES_MAX - 1)
    result = wait_s()
    assert result - (LOGIN_WINDOW_S - age_s) < 1
    clock.move(result - 1.001)
    assert wait_s() in (1, 2)
    clock.move(1.001)
    tries(1)


def test_the_later_end_of_the_two_counts(clock: Clock) -> None:
    tries(LOGIN_FAILURES_MAX, "ada", HERE)
    clock.move(600)
    tries(LOGIN_FAILURES_MAX, "bob", THERE)
    assert wait_s("ada", HERE) == 300
    assert wait_s("ada", THERE) == 900
    assert wait_s("bob", HERE) == 900


def test_the_window_slides(clock: Clock) -> None:
    for _ in range(30):
        tries(1)
        clock.move(LOGIN_WINDOW_S / LOGIN_FAILURES_MAX)
    tries(1)
    assert len(rows()) <= 2 * (LOGIN_FAILURES_MAX + 1)


def test_a_success_forgives_the_user_and_this_try_of_the_address(clock: Clock) -> None:
    make_user("ada", 2001)
    tries(2, "bob", HERE)
    tries(3, "ada", HERE)
    throttle.forgive("ada", HERE, is_known=False)
    assert failed() == 0
    tries(1, "bob", HERE)  # four of the address are left, not five
    assert wait_s("carl", HERE)
    tries(5, "ada", THERE)
    assert wait_s("ada", THERE)


def test_right_passwords_in_between_do_not_reset_an_address(clock: Clock) -> None:
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, f"victim{number}", HERE)
        if number < LOGIN_FAILURES_MAX - 1:
            tries(1, "mallory", HERE)
            throttle.forgive("mallory", HERE, is_known=False)
    assert wait_s("mallory", HERE)


def test_a_try_that_was_not_made_is_withdrawn(clock: Clock) -> None:
    make_user("ada", 2001)
    tries(LOGIN_FAILURES_MAX - 1)
    before = rows()
    for _ in range(10):
        tries(1)
        throttle.withdraw("ada", HERE, is_known=False)
    assert rows() == before
    assert failed() == LOGIN_FAILURES_MAX - 1
    throttle.withdraw("nobody", THERE, is_known=False)
    assert rows() == before


def test_forgetting_a_user_leaves_the_address(clock: Clock) -> None:
    make_user("ada", 2001)
    tries(LOGIN_FAILURES_MAX)
    throttle.forget_user("ada")
    assert failed() == 0
    tries(1, "ada", THERE)
    assert wait_s("ada", HERE)


def test_failures_in_a_row_are_counted_for_who_exists(clock: Clock) -> None:
    make_user("ada", 2001)
    for _ in range(40):
        tries(1, "ada", HERE)
        tries(1, "nobody", THERE)
        clock.move(LOGIN_WINDOW_S / LOGIN_FAILURES_MAX)
    assert failed() == 40
    throttle.forgive("ada", HERE, is_known=False)
    assert failed() == 0


def test_an_ipv6_client_cannot_move_within_its_network(clock: Clock) -> None:
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, f"user{number}", f"2001:db8::{number + 1:x}")
    assert wait_s("another", "2001:db8::ffff:1")


def test_names_and_addresses_are_kept_apart_and_in_clear_nowhere(clock: Clock, db: str) -> None:
    tries(LOGIN_FAILURES_MAX, "192.0.2.77", HERE)
    tries(1, "ada", "192.0.2.77")
    tries(1, "my secret typed as a name", THERE)
    with sqlite3.connect(db) as connection:
        dump = "\n".join(connection.iterdump())
    connection.close()
    assert "192.0.2" not in dump
    assert "my secret" not in dump
    subject = throttle.subject("user", "ada")
    configured(secret=b"another secret of thirty-two ...")
    assert throttle.subject("user", "ada") != subject


def at_once(count: int, enter: Any) -> list[int]:
    answers: list[int] = []
    start = threading.Barrier(count)

    def run(number: int) -> None:
        start.wait()
        answers.append(enter(number))
        close_database()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_of_fifty_tries_at_once_five_get_through(db: str) -> None:
    make_user("ada", 2001)
    answers = at_once(50, lambda number: wait_s("ada", f"192.0.2.{number}"))
    assert len(answers) == 50
    assert answers.count(0) == LOGIN_FAILURES_MAX
    assert failed() == LOGIN_FAILURES_MAX
    answers = at_once(50, lambda number: wait_s(f"user{number}", THERE))
    assert answers.count(0) == LOGIN_FAILURES_MAX


def test_a_clock_set_back_neither_opens_nor_closes_for_ever(clock: Clock) -> None:
    """Failures from the future count as if they were of now: the wait begins again, once."""
    tries(LOGIN_FAILURES_MAX)
    clock.move(-400 * 86400)
    assert wait_s() == LOGIN_WINDOW_S
    clock.move(LOGIN_WINDOW_S - 1)
    assert wait_s() == 1
    clock.move(1)
    tries(LOGIN_FAILURES_MAX)
    assert wait_s() == LOGIN_WINDOW_S


def test_a_clock_set_forward_forgets(clock: Clock) -> None:
    tries(LOGIN_FAILURES_MAX)
    clock.move(400 * 86400)
    tries(LOGIN_FAILURES_MAX)


def test_old_rows_go_whoever_they_are_of(clock: Clock) -> None:
    for number in range(30):
        tries(1, f"user{number}", f"192.0.2.{number}")
    clock.move(LOGIN_WINDOW_S)
    for number in range(5):
        tries(1, f"other{number}", f"198.51.100.{number}")
    assert len(rows()) == 10


def test_rows_from_the_future_go_too_whoever_they_are_of(clock: Clock) -> None:
    for number in range(30):
        tries(1, f"user{number}", f"192.0.2.{number}")
    clock.move(-400 * 86400)
    for number in range(20):
        tries(1, f"other{number}", f"198.51.100.{number}")
        clock.move(LOGIN_WINDOW_S)
    assert len(rows()) <= 2 * 3


def test_the_hot_path_reads_by_index_alone(db: str) -> None:
    statements = []
    connection = database.connection()
    connection.set_trace_callback(statements.append)
    throttle.enter("ada", HERE)
    connection.set_trace_callback(None)
    plans = [
        row[3]
        for statement in statements
        if statement.startswith(("SELECT", "UPDATE", "DELETE"))
        for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
    ]
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN")] == ["SCAN login_failures"] * 2  # the oldest 20


# --- where users have logged in before --------------------------------------------------


def log_in(name: str = "ada", address: str = HERE) -> None:
    """A right password from there."""
    throttle.forgive(name, address, throttle.enter(name, address))


def test_failures_of_others_do_not_lock_out_where_the_user_has_logged_in(clock: Clock) -> None:
    make_user("ada", 2001)
    log_in("ada", HERE)
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, "ada", f"192.0.2.{number + 10}")
    assert wait_s("ada", THERE), "for others she is closed"
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, f"user{number}", HERE)
    assert wait_s("bob", HERE), "for other names the address is closed"
    tries(LOGIN_FAILURES_MAX, "ada", HERE)
    assert wait_s("ada", HERE), "her own failures from there count"
    assert failed() == LOGIN_FAILURES_MAX, "of others"


def test_her_own_failures_there_lock_out_nobody_else(clock: Clock) -> None:
    make_user("ada", 2001)
    log_in("ada", HERE)
    tries(LOGIN_FAILURES_MAX, "ada", HERE)
    tries(1, "bob", HERE)
    tries(1, "ada", THERE)


def test_after_many_failures_in_a_row_a_place_is_like_any_other(clock: Clock) -> None:
    make_user("ada", 2001)
    log_in("ada", HERE)
    for _ in range(LOGIN_PLACE_FAILURES // LOGIN_FAILURES_MAX):
        tries(LOGIN_FAILURES_MAX, "ada", HERE)
        clock.move(LOGIN_WINDOW_S + 1)
    tries(LOGIN_FAILURES_MAX, "ada", THERE)
    assert wait_s("ada", HERE)


def test_a_refused_hash_is_taken_back_there_too(clock: Clock) -> None:
    make_user("ada", 2001)
    log_in("ada", HERE)
    for _ in range(2 * LOGIN_FAILURES_MAX):
        throttle.withdraw("ada", HERE, throttle.enter("ada", HERE))
    assert rows() == []
    assert database.execute_sql("SELECT failures FROM login_places").fetchall() == [(0,)]


def test_places_are_forgotten(clock: Clock) -> None:
    user = make_user("ada", 2001)
    for number in range(LOGIN_PLACES_PER_USER + 5):
        log_in("ada", f"192.0.2.{number}")
        clock.move(1)
    assert database.execute_sql("SELECT count(*) FROM login_places").fetchone() == (LOGIN_PLACES_PER_USER,)
    assert not throttle.enter("ada", "192.0.2.1")
    assert throttle.enter("ada", "192.0.2.24")
    clock.move(LOGIN_PLACE_S)
    assert not throttle.enter("ada", "192.0.2.24")
    log_in("ada", THERE)
    throttle.forget_places(user.id)
    assert not throttle.enter("ada", THERE)


def test_logins_where_one_is_known_do_not_reset_the_address(clock: Clock) -> None:
    make_user("mallory", 2001)
    log_in("mallory", HERE)
    for number in range(LOGIN_FAILURES_MAX):
        tries(1, f"victim{number}", HERE)
        log_in("mallory", HERE)
    assert wait_s("another", HERE)
    log_in("mallory", HERE)
