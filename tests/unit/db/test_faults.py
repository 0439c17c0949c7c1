"""Faults of the disk and of the file are errors of ours, whatever wraps SQLite's."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import peewee
import pytest
from unit.db.disks import failing_writes, no_room, zero_page_of

from svc.db import condition, faults
from svc.db.connect import close_database, database, open_database, write
from svc.errors import DatabaseDamaged, DatabaseRefused, StorageFailed, StorageFull


@pytest.fixture(autouse=True)
def quick_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here connections have the pragmas of the product; their faults become the condition."""
    monkeypatch.setattr(database, "notes_faults", True)
    monkeypatch.setattr(condition, "_seen", {})


def note(value: str) -> None:
    with write():
        database.execute_sql("INSERT OR REPLACE INTO facts (name, value) VALUES ('x', ?)", (value,))


def test_a_full_disk(migrated: str) -> None:
    open_database(migrated)
    with no_room(), pytest.raises(StorageFull) as caught:
        note("x" * 100_000)
    assert caught.value.hint == "sudo svc admin doctor"
    assert condition.find(migrated) is None, "room comes back by itself"


def test_a_disk_that_does_not_write(migrated: str) -> None:
    """It was an internal error, and the service's health was ok."""
    open_database(migrated)
    note("1")
    with failing_writes(), pytest.raises(StorageFailed) as caught:
        note("2")
    assert (caught.value.status, caught.value.retryable) == (503, True)
    assert "SQLITE_IOERR" in caught.value.message
    found = condition.find(migrated)
    assert found is not None
    assert found.code == "storage_failed"
    note("3")


def test_a_page_that_is_none(migrated: str) -> None:
    open_database(migrated)
    close_database()
    zero_page_of(migrated, "facts")
    open_database(migrated)
    with pytest.raises(DatabaseDamaged):
        note("1")
    with pytest.raises(DatabaseDamaged, match="nothing is written") as caught, write():
        pytest.fail("what is whole is not written to either")
    assert not caught.value.retryable
    assert database.execute_sql("SELECT count(*) FROM users").fetchone() == (0,)


def test_no_database_at_all(tmp_path: Path) -> None:
    path = tmp_path / "svc.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(DatabaseRefused, match="file is not a database"):
        open_database(str(path))


def test_other_errors_are_none_of_these(migrated: str) -> None:
    open_database(migrated)
    with pytest.raises(peewee.OperationalError, match="no such table") as caught:
        database.execute_sql("SELECT 1 FROM absent")
    assert faults.error_of(caught.value) is None
    assert faults.error_of(sqlite3.InterfaceError("of Python's own module, without a code")) is None
