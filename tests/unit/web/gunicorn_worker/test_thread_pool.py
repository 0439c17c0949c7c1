"""The threads of a listener, and their connections to the database: who has the next job, who ends."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from pathlib import Path

import pytest
from unit.serving import copy_of_migrated

from svc.db.connect import close_database, database, open_database
from svc.web.gunicorn_worker.thread_pool import ThreadPool

WITHIN_S = 20.0
FOREVER_S = 600.0


def until(holds: Callable[[], bool]) -> None:
    """Wait until it holds."""
    deadline = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def busy(pool: ThreadPool, count: int) -> Iterator[list[threading.Event]]:
    """So many jobs under way at once; each ends by its event, all at the end of the block."""
    begun, ends = threading.Barrier(count + 1), [threading.Event() for _ in range(count)]

    def work(end: threading.Event) -> int:
        begun.wait(WITHIN_S)
        end.wait(WITHIN_S)
        return threading.get_ident()

    jobs = [pool.submit(work, end) for end in ends]
    begun.wait(WITHIN_S)
    try:
        yield ends
    finally:
        for end in ends:
            end.set()
        wait(jobs, WITHIN_S)


def who(pool: ThreadPool) -> int:
    """The thread that does the next job."""
    return int(pool.submit(threading.get_ident).result(WITHIN_S))


def test_a_result_and_a_failure_come_as_those_of_an_executor() -> None:
    pool = ThreadPool(lambda: None, FOREVER_S)
    assert pool.submit(divmod, 7, 2).result(WITHIN_S) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        pool.submit(divmod, 7, 0).result(WITHIN_S)
    with pytest.raises(SystemExit):
        pool.submit(exit, 3).result(WITHIN_S)
    assert pool.count == 1, "a failure ends no thread, and the thread is free when its result is there"


def test_the_thread_that_became_free_last_has_the_next_job() -> None:
    pool = ThreadPool(lambda: None, FOREVER_S)
    with busy(pool, 5) as ends:
        for place in (2, 4, 0, 1, 3):
            ends[place].set()
            until(lambda place=place: len(pool.idle) == (2, 4, 0, 1, 3).index(place) + 1)  # type: ignore[misc]
    last, count = pool.idle[-1].ident, pool.count
    assert [who(pool) for _ in range(20)] == [last] * 20
    assert pool.count == count == 5


def test_there_is_a_thread_for_each_job_under_way() -> None:
    pool = ThreadPool(lambda: None, FOREVER_S)
    for _ in range(3):
        with busy(pool, 8):
            assert (pool.count, len(pool.idle)) == (8, 0)


def test_idle_threads_end_but_for_the_last() -> None:
    ended: list[int] = []
    pool = ThreadPool(lambda: ended.append(threading.get_ident()), 0.05)
    with busy(pool, 6):
        assert not ended
    until(lambda: len(ended) == 5)
    assert (pool.count, len(pool.idle)) == (1, 1)
    stays = pool.idle[0].ident
    assert stays not in ended
    time.sleep(0.2)  # several idle times
    assert who(pool) == stays
    with busy(pool, 3):
        assert pool.count == 3


def test_jobs_that_come_while_threads_end_are_all_done() -> None:
    pool = ThreadPool(lambda: None, 0.001)
    for round_ in range(200):
        jobs = [pool.submit(divmod, round_, 7) for _ in range(4)]
        assert [job.result(WITHIN_S) for job in jobs] == [divmod(round_, 7)] * 4
        time.sleep(0.001)
    until(lambda: pool.count == 1)


def test_a_job_waits_where_the_system_allows_no_more_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    pool = ThreadPool(lambda: None, FOREVER_S)
    with busy(pool, 1):
        monkeypatch.setattr(threading.Thread, "start", refuse)
        jobs = [pool.submit(divmod, 7, number) for number in (2, 3)]
        assert len(pool.waiting) == 2
    assert [job.result(WITHIN_S) for job in jobs] == [(3, 1), (2, 1)]
    assert pool.count == 1
    with pytest.raises(RuntimeError):
        ThreadPool(lambda: None).submit(divmod, 7, 2)


def test_an_idle_thread_keeps_nothing_of_its_job() -> None:
    class Body:
        """What a request brings."""

    pool, body = ThreadPool(lambda: None, FOREVER_S), Body()
    gone = weakref.ref(body)
    pool.submit(repr, body).result(WITHIN_S)
    del body

    def is_gone() -> bool:
        gc.collect()
        return gone() is None

    until(is_gone)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[None]:
    """A database, open in no thread."""
    open_database(copy_of_migrated(str(tmp_path / "svc.db")))
    close_database()
    yield
    close_database()


@pytest.mark.usefixtures("opened")
def test_a_thread_that_ends_closes_its_connection() -> None:
    closed: list[bool] = []

    def end() -> None:
        closed.append(database.is_closed())
        close_database()
        closed.append(database.is_closed())

    def look() -> int:
        gate.wait(WITHIN_S)
        return int(database.execute_sql("SELECT count(*) FROM facts").fetchone()[0] >= 0)

    pool, gate = ThreadPool(end, 0.2), threading.Barrier(4)
    jobs = [pool.submit(look) for _ in range(4)]
    assert [job.result(WITHIN_S) for job in jobs] == [1] * 4
    until(lambda: len(closed) == 6)
    assert sorted(closed) == [False] * 3 + [True] * 3
    assert not pool.submit(database.is_closed).result(WITHIN_S), "the last keeps its connection"
    pool.submit(close_database).result(WITHIN_S)


@pytest.mark.usefixtures("opened")
def test_a_thread_whose_transaction_failed_is_clean_for_the_next_job() -> None:
    pool = ThreadPool(close_database, FOREVER_S)

    def fail() -> None:
        with database.atomic("IMMEDIATE"):
            database.execute_sql("INSERT INTO facts (name, value) VALUES ('half', '')")
            raise LookupError

    with pytest.raises(LookupError):
        pool.submit(fail).result(WITHIN_S)
    count = "SELECT count(*) FROM facts WHERE name = 'half'"
    assert pool.submit(lambda: database.execute_sql(count).fetchone()[0]).result(WITHIN_S) == 0
    assert not pool.submit(database.in_transaction).result(WITHIN_S)
    pool.submit(close_database).result(WITHIN_S)
