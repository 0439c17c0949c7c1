"""The worker's upkeep of the database, and that no fault of its disk ends the worker."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from unit.db.disks import failing_writes, zero_page_of

from svc.db import check, condition, reserve
from svc.db.connect import close_database, database, open_database, write
from svc.domain.audit import audit
from svc.errors import DatabaseDamaged
from svc.worker.loop import Loop
from svc.worker.upkeep import CHECKPOINT_BYTES, Upkeep


@pytest.fixture(autouse=True)
def of_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "notes_faults", True)
    monkeypatch.setattr(condition, "_seen", {})


@pytest.fixture
def upkeep(db: str) -> Upkeep:
    return Upkeep(db)


def checked(upkeep: Upkeep) -> None:
    """Have the check run that is due, to its end."""
    upkeep.check_at = 0.0
    upkeep.begin()
    assert upkeep.check is not None
    upkeep.check.join(10)


def test_the_reserve_is_made_and_the_check_runs(upkeep: Upkeep, db: str) -> None:
    checked(upkeep)
    assert reserve.is_whole(db)
    assert upkeep.check_at > time.monotonic() + 60


def test_nothing_is_written_back_over_damage(
    upkeep: Upkeep, db: str, capfd: pytest.CaptureFixture[str]
) -> None:
    close_database()
    whole = Path(db).read_bytes()
    zero_page_of(db, "tokens")
    open_database(db)
    checked(upkeep)
    assert "the database is damaged" in capfd.readouterr().err
    assert condition.find_damage(db) is not None
    damaged = Path(db).read_bytes()
    database.execute_sql("CREATE TABLE late (x)")  # a transaction that was under way
    upkeep.checkpoint()
    assert Path(db).read_bytes() == damaged
    close_database()
    for path in (f"{db}-wal", f"{db}-shm"):
        Path(path).unlink(missing_ok=True)
    Path(db).write_bytes(whole)
    open_database(db)
    checked(upkeep)
    assert condition.find_damage(db) is None
    assert "no longer damaged" in capfd.readouterr().err


def test_a_failing_disk_is_noted_until_it_works(
    upkeep: Upkeep, db: str, capfd: pytest.CaptureFixture[str]
) -> None:
    checked(upkeep)
    database.execute_sql("CREATE TABLE new (x)")
    with failing_writes(65536):
        for _ in range(3):
            upkeep.checkpointed_at = 0.0
            try:
                upkeep.begin()
            except Exception as error:
                upkeep.note(error)
    said = capfd.readouterr().err
    assert said.count("storage_failed") == 1, "once, not in every round"
    found = condition.find(db)
    assert found is not None
    assert found.code == "storage_failed"
    upkeep.checkpoint()
    assert condition.find(db) is None


def test_nobody_waits_for_a_checkpoint_that_waits_for_a_reader(upkeep: Upkeep, db: str) -> None:
    """A check or a backup of a large database reads for half a minute."""
    checked(upkeep)
    database.execute_sql("CREATE TABLE new (x)")
    with closing(sqlite3.connect(db, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM new").fetchall()
        database.execute_sql("INSERT INTO new VALUES (1)")
        emptied: list[str] = []
        database.connection().set_trace_callback(
            lambda sql: emptied.append(sql) if "TRUNCATE" in sql else None
        )
        upkeep.checkpoint()
        assert emptied == []
        reader.execute("COMMIT")
        upkeep.checkpoint()
    database.connection().set_trace_callback(None)
    assert len(emptied) == 1
    assert os.stat(upkeep.log_path).st_size == 0


def test_what_is_no_fault_of_the_disk_is_not_hidden(upkeep: Upkeep) -> None:
    with pytest.raises(KeyError):
        upkeep.note(KeyError("a bug"))


@pytest.fixture
def loop(db: str) -> Iterator[Loop]:
    event = os.eventfd(0)
    settings: Any = SimpleNamespace(db=db)
    yield Loop(settings, None, event)  # type: ignore[arg-type]  # it asks no helper here
    os.close(event)


def test_the_loop_goes_on_without_its_database(loop: Loop, db: str) -> None:
    assert loop._survive(loop._dispatch)
    condition.note(db, DatabaseDamaged("page 30"))
    loop.recovered = False
    assert not loop._survive(loop._dispatch)
    condition.clear(db, "database_damaged")
    assert loop._survive(loop._dispatch)
    assert loop.recovered


def test_what_ended_long_ago_is_forgotten_once_a_day(upkeep: Upkeep, owner: int) -> None:
    at = "2020-01-01T00:00:00.000Z"
    insert = (
        "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, created_at,"
        " updated_at, finished_at) VALUES (?, ?, 'pull', 'image', 'x', 'failed', ?, ?, ?)"
    )
    upkeep.forget_at = 0.0
    for name, forgotten in (("op-1", True), ("op-2", False)):
        database.execute_sql(insert, (name, owner, at, at, at))
        checked(upkeep)
        gone = not database.execute_sql("SELECT 1 FROM operations WHERE id = ?", (name,)).fetchall()
        assert gone is forgotten


# --- losses ------------------------------------------------------------------------------


def log_one() -> None:
    """One row more in the audit, whose newest row is looked for."""
    audit.append(audit.Actor(None, "root", "admin"), "admin.test", "", "ok", "r-1", {})


def round_of(upkeep: Upkeep) -> None:
    """A round of the worker, in which the head is due."""
    upkeep.head_at, upkeep.check_at = 0.0, float("inf")
    upkeep.begin()


def test_a_worker_that_has_just_started_empties_the_log(upkeep: Upkeep, db: str) -> None:
    """One that dies every few seconds would else never do it."""
    log_one()
    assert os.stat(upkeep.log_path).st_size > 0
    round_of(upkeep)
    assert os.stat(upkeep.log_path).st_size == 0


def test_a_log_that_grows_is_looked_at_each_second(upkeep: Upkeep) -> None:
    assert upkeep.wait_s() > 5
    with write():
        database.execute_sql("CREATE TABLE large (x)")
        database.execute_sql("INSERT INTO large VALUES (zeroblob(?))", (CHECKPOINT_BYTES // 2,))
    assert upkeep.wait_s() == 1.0


def test_a_log_that_was_lost_is_noticed_at_the_next_start(upkeep: Upkeep, db: str) -> None:
    """SQLite takes what is left of it for all that there was."""
    log_one()
    round_of(upkeep)
    log_one()
    round_of(upkeep)
    assert os.stat(upkeep.log_path).st_size > 0, "the log alone has the newest row"
    lost = Path(db).read_bytes()
    close_database()
    Path(db).write_bytes(lost)  # without what closing has written back
    check.require_usable(db)
    close_database()
    found = condition.find_damage(db)
    assert found is not None
    assert found.reason.endswith("the newest changes are lost: the audit ends with row 1, and had row 2")
    open_database(db)
    again = Upkeep(db)
    checked(again)
    assert condition.find_damage(db) is not None, "a sound file does not end it"
    Path(check.head_path(db)).unlink()  # as the doctor says, to go on with what is left
    checked(again)
    assert condition.find_damage(db) is None


def test_archived_rows_are_not_lost(upkeep: Upkeep, db: str) -> None:
    log_one()
    head = check.newest(database.connection())
    assert check.has(database.connection(), head)
    assert not check.has(database.connection(), head._replace(id=2))
    assert not check.has(database.connection(), head._replace(hash="0" * 64))
    database.execute_sql("INSERT INTO audit_archived (one, id, hash, at) VALUES (1, 5, ?, '')", ("a" * 64,))
    assert check.has(database.connection(), head._replace(id=2))
    assert not check.has(database.connection(), head._replace(id=6))


def test_an_older_copy_over_the_open_database(upkeep: Upkeep, db: str) -> None:
    log_one()
    round_of(upkeep)
    older = Path(db).read_bytes()
    log_one()
    upkeep.checkpoint()
    round_of(upkeep)
    assert condition.find_damage(db) is None
    with open(db, "r+b") as file:
        file.write(older)
        file.truncate()
    round_of(upkeep)
    found = condition.find_damage(db)
    assert found is not None
    assert "another program has written over its file" in found.reason
    close_database()
    check.require_usable(db)
    assert condition.find_damage(db) is not None, "nor is it forgotten by the next start"


def test_another_file_in_the_place_of_the_open_one(upkeep: Upkeep, db: str, tmp_path: Path) -> None:
    round_of(upkeep)
    copy = tmp_path / "copy.db"
    copy.write_bytes(Path(db).read_bytes())
    copy.rename(db)
    round_of(upkeep)
    found = condition.find_damage(db)
    assert found is not None
    assert "is not the file that the service has open" in found.reason


def test_another_program_that_writes_what_is_right(upkeep: Upkeep, db: str) -> None:
    """It is checked at once, and nothing is found."""
    log_one()
    round_of(upkeep)
    os.utime(db)
    upkeep.begin()
    assert upkeep.check is not None
    upkeep.check.join(10)
    assert condition.find(db) is None


@pytest.mark.parametrize(
    "content", ["", "[]", '{"id": 1}', '{"id": 9, "hash": "a", "overwritten_at": "", "inode": 1}']
)
def test_a_head_that_is_cut_off_or_of_another_file_says_nothing(db: str, content: str) -> None:
    Path(check.head_path(db)).write_text(content)
    assert check.loss(database.connection(), db) == ""
