"""The queue of writers: by user, in the order of arrival, a place that is given up, and equal shares."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from unit.serving import copy_of_migrated

from svc.db import connect
from svc.db.connect import close_database, database, open_database, write
from svc.db.turns import NoTurn, Turns
from svc.errors import Maintenance


@contextmanager
def running(*acts: Callable[[], object]) -> Iterator[None]:
    """Each act in a thread, joined at the end."""
    threads = [threading.Thread(target=act, daemon=True) for act in acts]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for thread in threads:
            thread.join(10)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def waiting(turns: Turns) -> int:
    return sum(map(len, turns.waiting.values()))


def test_users_have_turns_however_many_calls_one_has() -> None:
    turns, order, threads = Turns(), [], []

    def take(user: str) -> None:
        with turns.turn(10, user):
            order.append(user)

    with turns.turn(10, "eve"):
        for number, user in enumerate(["eve"] * 16 + ["bob", "bob", "ada"]):
            threads.append(threading.Thread(target=take, args=(user,)))
            threads[-1].start()
            until(lambda number=number: waiting(turns) == number + 1)
    for thread in threads:
        thread.join(10)
    assert order == ["bob", "ada", "eve", "bob", *["eve"] * 15]
    assert not turns.held
    assert not turns.waiting


def test_who_came_first_is_first() -> None:
    turns, order, threads = Turns(), [], []

    def take(number: int) -> None:
        with turns.turn(10):
            order.append(number)

    with turns.turn(10):
        for number in range(30):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            until(lambda number=number: waiting(turns) == number + 1)
    for thread in threads:
        thread.join(10)
    assert order == list(range(30))
    assert not turns.held


def test_a_deadline_gives_the_place_up() -> None:
    turns, taken = Turns(), threading.Event()

    def take() -> None:
        with turns.turn(10):
            taken.set()

    with turns.turn(0):
        with pytest.raises(NoTurn), turns.turn(0.02):
            pytest.fail("it is held")
        assert not turns.waiting
        with running(take):
            until(lambda: turns.waiting)
            assert not taken.is_set()
            turns._pass_on()
            assert taken.wait(10)
            until(lambda: not turns.held)
            turns.held = True  # which the block gives back


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns()
    with pytest.raises(ZeroDivisionError), turns.turn(0):
        _ = 1 / 0
    with turns.turn(0):
        pass


@pytest.fixture
def opened(tmp_path: object) -> Iterator[str]:
    path = copy_of_migrated(f"{tmp_path}/svc.db")
    open_database(path)
    yield path
    close_database()


def test_writers_get_equal_shares(opened: str) -> None:
    """With SQLite's own wait one thread of twelve had ten times what another had."""
    counts, gate, over = [0] * 12, threading.Barrier(13), threading.Event()

    def work(number: int) -> None:
        try:
            database.connection()
            gate.wait()
            while not over.is_set():
                with write():
                    database.execute_sql(
                        "INSERT OR REPLACE INTO facts (name, value) VALUES (?, '')", (str(number),)
                    )
                    time.sleep(0.0005)
                counts[number] += 1
        finally:
            close_database()

    with running(*[lambda number=number: work(number) for number in range(len(counts))]):
        gate.wait()
        time.sleep(1.5)
        over.set()
    assert min(counts) > 0.7 * max(counts), counts


def test_a_writer_of_another_process_gets_its_share(opened: str) -> None:
    """Its tries meet the moment between two writers of this process; each waits for milliseconds only."""
    stop, waits = threading.Event(), []

    def work() -> None:
        try:
            while not stop.is_set():
                with write():
                    time.sleep(0.002)
        finally:
            close_database()

    other = connect.Database(opened, pragmas=connect.PRAGMAS)
    with running(*[work] * 8):
        try:
            for _ in range(20):
                began = time.monotonic()
                with other.atomic("IMMEDIATE"):
                    waits.append(time.monotonic() - began)
                time.sleep(0.005)
        finally:
            stop.set()
    other.close()
    assert max(waits) < 1, waits


def test_a_thread_that_waits_too_long_is_told_to_try_again(
    opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WRITE_WAIT_S", 0.05)
    holding, over = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with write():
                holding.set()
                over.wait(10)
        finally:
            close_database()

    with running(hold):
        holding.wait(10)
        with pytest.raises(Maintenance) as refused, write():
            pytest.fail("it is another's turn")
        assert refused.value.retryable
        over.set()
    with write():
        pass


def test_the_wait_for_another_process_ends(opened: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "WRITE_WAIT_S", 0.05)
    other = sqlite3.connect(opened, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Maintenance), write():
        pytest.fail("the lock is somebody else's")
    other.execute("COMMIT")
    with write():
        assert database.execute_sql("PRAGMA busy_timeout").fetchone() == (connect.BUSY_TIMEOUT_MS,)
    other.close()
