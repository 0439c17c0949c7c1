"""Fault tests 1 and 4: writers that are killed, and backups while amounts move between rows."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from depths import rounds
from unit.admin.conftest import Svc
from unit.admin.rows import ask, change
from waiting import until

from svc.db.connect import PRAGMAS, open_database, write
from svc.db.connect import database as connected

KILLS = rounds(2, 6, 100)
BACKUPS = rounds(2, 5, 100)
WRITERS = 3
ACCOUNTS, EACH = 20, 1000


@pytest.fixture(autouse=True)
def quick_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here connections have the pragmas of the product."""
    monkeypatch.setattr(connected, "_pragmas", list(PRAGMAS.items()))


@contextmanager
def processes(*works: Callable[[], None]) -> Iterator[None]:
    """Each in a process of its own that never ends by itself; all are killed at once."""
    pids = []
    for work in works:
        pid = os.fork()
        if pid == 0:
            try:
                work()
            finally:
                os._exit(1)
        pids.append(pid)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        endings = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert endings == [-signal.SIGKILL] * len(pids), "a writer ended by itself"


def writer(path: str, number: int, told: int) -> None:
    """Insert row after row and note outside of the database which were acknowledged; one checkpoints."""
    open_database(path)
    count = 0
    while True:
        count += 1
        with write():
            name = f"w-{number}-{os.getpid()}-{count}"
            connected.execute_sql("INSERT INTO facts VALUES (?, ?)", (name, "x" * 200))
        os.write(told, f"{name}\n".encode())
        if number == 0 and count % 20 == 0:
            connected.execute_sql("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def test_every_acknowledged_row_is_there_after_a_kill(database: str, tmp_path: Path) -> None:
    """As the service: several writers, of which one checkpoints; all are killed at a random moment."""
    chance = random.Random(1)
    told = os.open(tmp_path / "told", os.O_RDWR | os.O_CREAT | os.O_APPEND)
    for _ in range(KILLS):
        with processes(*(lambda number=number: writer(database, number, told) for number in range(WRITERS))):
            time.sleep(chance.uniform(0.05, 0.4))
        acknowledged = set((tmp_path / "told").read_text().split())
        present = {name for (name,) in ask(database, "SELECT name FROM facts WHERE name LIKE 'w-%'")}
        assert not acknowledged - present
        assert len(present - acknowledged) <= WRITERS, "at most one each was not acknowledged any more"
        assert ask(database, "PRAGMA integrity_check") == [("ok",)]
        change(database, "DELETE FROM facts WHERE name LIKE 'w-%'")
        os.ftruncate(told, 0)
    os.close(told)


def mover(path: str, seed: int) -> None:
    """Move amounts between two rows, both in one transaction."""
    open_database(path)
    chance = random.Random(seed)
    while True:
        source, target = chance.sample(range(ACCOUNTS), 2)
        with write():
            for number, amount in ((source, -7), (target, 7)):
                connected.execute_sql(
                    "UPDATE facts SET value = CAST(value AS INTEGER) + ? WHERE name = ?",
                    (amount, f"amount-{number}"),
                )


def amounts(path: str) -> list[int]:
    return [int(value) for (value,) in ask(path, "SELECT value FROM facts WHERE name LIKE 'amount-%'")]


def test_a_backup_during_transfers_is_one_state(svc: Svc, database: str, folder: Path) -> None:
    """The whole command beside writers at full rate: no snapshot has half of a transaction."""
    for number in range(ACCOUNTS):
        change(database, f"INSERT INTO facts VALUES ('amount-{number}', '{EACH}')")
    states = set()
    with processes(*(lambda seed=seed: mover(database, seed) for seed in range(2))):
        for number in range(BACKUPS):
            code, _, err = svc("backup", "--out", f"{folder}/{number}.db")
            assert code == 0, err
            states.add(tuple(found := amounts(f"{folder}/{number}.db")))
            assert sum(found) == ACCOUNTS * EACH
            assert ask(f"{folder}/{number}.db", "PRAGMA integrity_check") == [("ok",)]
            until(lambda found=found: amounts(database) != found, 60)  # on a busy machine they come late
    assert len(states) > 1, "nobody wrote meanwhile"
    assert sum(amounts(database)) == ACCOUNTS * EACH
