"""One chain, also across threads and processes; what was tampered with is found."""

from __future__ import annotations

import os
import threading
from typing import Any

import pytest

from svc.db import connect
from svc.db.connect import database, write
from svc.domain.audit import audit, chain
from svc.domain.audit.chain import Head, Verified
from svc.domain.principal import Caller

UNKNOWN = audit.Actor(None, "(unknown)", "session", "192.0.2.1")


@pytest.fixture(autouse=True)
def opened(db: str) -> None:
    """Every test has a database of its own."""


def append(target: str = "(unknown)", rid: str = "req-1", detail: dict[str, Any] | None = None) -> None:
    """A row of nobody's."""
    audit.append(UNKNOWN, "auth.login", target, "unauthenticated", rid, detail or {})


def test_a_chain_from_the_first_row_on() -> None:
    assert chain.verify() == Verified(0, 0, Head(0, ""), None)
    for number in range(3):
        append(rid=f"req-{number}")
    found = chain.verify()
    assert found == Verified(3, 3, Head(3, found.head.hash), None)
    assert found.head.hash == chain.hash_of(3) != chain.hash_of(2)
    assert chain.hash_of(4) is None


def test_rows_that_are_older_than_the_chain() -> None:
    for number in (1, 2):
        database.execute_sql(
            "INSERT INTO audit (id, at, user_name, via, action, outcome, request_id)"
            " VALUES (?, '2025-01-01T00:00:00.000Z', 'ada', 'socket', 'thing.do', 'ok', 'req-0')",
            (number,),
        )
    append()
    found = chain.verify()
    assert (found.rows, found.chained, found.broken_at) == (3, 1, None)


def test_what_is_rolled_back_leaves_no_gap(ada: Caller) -> None:
    append()
    with pytest.raises(KeyError), write():
        append()
        append()
        raise KeyError
    with write():
        append()
        with pytest.raises(KeyError), write():  # a savepoint inside
            append()
            raise KeyError
        append()
    assert [row[0] for row in database.execute_sql("SELECT id FROM audit ORDER BY id")] == [1, 2, 3]
    assert chain.verify().broken_at is None


def in_a_process(path: str, work: Any) -> int:
    """Fork and do the work on a connection of its own; the pid."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            connect.open_database(path)
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def test_threads_and_processes_make_one_chain(db: str) -> None:
    def some(thread: int) -> None:
        for _ in range(10):
            append(detail={"pid": os.getpid(), "thread": thread})
        connect.close_database()

    def threads() -> None:
        started = [threading.Thread(target=some, args=(number,)) for number in range(4)]
        for thread in started:
            thread.start()
        for thread in started:
            thread.join()

    connect.close_database()  # none may be open at a fork
    pids = [in_a_process(db, threads) for _ in range(3)]
    assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids] == [0, 0, 0]
    connect.open_database(db)
    found = chain.verify()
    assert (found.rows, found.chained, found.broken_at) == (120, 120, None)
    assert database.execute_sql("SELECT count(DISTINCT detail_json) FROM audit").fetchone()[0] == 12


def test_a_walk_in_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(20):
        append()
    for step in (1, 3, 20, 21):
        monkeypatch.setattr(chain, "WALK_ROWS", step)
        assert chain.verify().rows == 20


COPIED = """INSERT INTO audit SELECT {}, at, user_id, user_name, via, address, action, target, outcome,
    request_id, detail_json, {} FROM audit WHERE id = 8"""
EXCHANGED = """UPDATE audit SET id = -1 WHERE id = 4; UPDATE audit SET id = 4 WHERE id = 5;
    UPDATE audit SET id = 5 WHERE id = -1"""
MOVED_UP = "DELETE FROM audit WHERE id = 4; UPDATE audit SET id = id - 1 WHERE id > 4"
HUGE = "replace(hex(zeroblob(3000000)), '0', 'x')"
# what somebody who took the triggers away did to eight rows, and the first that is not what was added
TAMPERED = {
    "a value": ("UPDATE audit SET outcome = 'ok' WHERE id = 4", 4),
    "the time": ("UPDATE audit SET at = '2020-01-01T00:00:00.000Z' WHERE id = 4", 4),
    "nobody becomes somebody": ("UPDATE audit SET user_id = 1 WHERE id = 4", 4),
    "the detail": ("UPDATE audit SET detail_json = '{ }' WHERE id = 4", 4),
    "a hash": ("UPDATE audit SET hash = 'x' WHERE id = 4", 4),
    "a hash taken away": ("UPDATE audit SET hash = '' WHERE id = 4", 4),
    "the beginning made older than the chain": ("UPDATE audit SET hash = '' WHERE id < 4", 4),
    "a row taken out": ("DELETE FROM audit WHERE id = 4", 4),
    "the first row taken out": ("DELETE FROM audit WHERE id = 1", 1),
    "two rows exchanged": (EXCHANGED, 4),
    "a row taken out and all behind it moved up": (MOVED_UP, 4),
    "a row put in at the end": (COPIED.format(9, "hash"), 9),
    "a row put in far away": (COPIED.format(99, "hash"), 9),
    "a row put in before the first": (COPIED.format(-9, "''"), 1),
    "a text that is none": ("UPDATE audit SET target = CAST(x'ff' AS TEXT) WHERE id = 4", 4),
    "a row that fills the memory": (f"UPDATE audit SET target = {HUGE} WHERE id = 4", 4),
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampering_is_found(how: str) -> None:
    for number in range(8):
        append(rid=f"req-{number}")
    statements, broken_at = TAMPERED[how]
    for name in ("audit_keeps_its_rows", "audit_keeps_its_values"):
        database.execute_sql(f"DROP TRIGGER {name}")
    for statement in statements.split(";"):
        database.execute_sql(statement)
    found = chain.verify()
    assert (found.broken_at, found.rows, found.head.id) == (broken_at, broken_at - 1, broken_at - 1)


def test_a_tail_that_was_cut_off_is_for_whoever_remembers_the_head() -> None:
    for _ in range(8):
        append()
    head = chain.verify()
    database.execute_sql("DROP TRIGGER audit_keeps_its_rows")
    database.execute_sql("DELETE FROM audit WHERE id > 5")
    assert chain.verify().broken_at is None
    assert chain.hash_of(head.head.id) is None
    for _ in range(3):
        append(target="another")
    assert chain.verify().broken_at is None
    assert chain.hash_of(head.head.id) != head.head.hash
