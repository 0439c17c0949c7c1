"""A transaction with events: their actor, and the file that wakes the listeners."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.serving import copy_of_migrated

from svc.db import acting, connect, events
from svc.db.connect import database, write

INSERT = "INSERT INTO events (type, subject_type) VALUES ('workspace.updated', 'host')"


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setattr(acting, "_default", acting.Actor())
    path = copy_of_migrated(str(tmp_path / "svc.db"))
    connect.open_database(path)
    yield path
    connect.close_database()
    acting.end()


def touched(db: str) -> bool:
    """Whether the file was touched since the last time."""
    path = f"{db}{events.SUFFIX}"
    if not os.path.exists(path):
        return False
    is_new = os.stat(path).st_mtime_ns != 0
    os.utime(path, ns=(0, 0))
    return is_new


def test_events_get_the_actor_of_their_transaction(db: str) -> None:
    acting.begin("ada", "socket")
    with write():
        database.execute_sql(INSERT)
        with write():
            database.execute_sql(INSERT)
    acting.end()
    with write():
        database.execute_sql(INSERT)
    rows = database.execute_sql("SELECT actor, via FROM events ORDER BY id").fetchall()
    assert rows == [("ada", "socket"), ("ada", "socket"), ("", "")]


def test_the_file_is_touched_after_a_commit_with_events_only(db: str) -> None:
    with write():
        database.execute_sql(INSERT)
    assert not os.path.exists(f"{db}{events.SUFFIX}")  # before somebody watches it
    events.ensure(f"{db}{events.SUFFIX}", db)
    assert touched(db)
    with write():
        database.execute_sql("INSERT INTO facts (name, value) VALUES ('x', 'y')")
    assert not touched(db)
    with write():
        database.execute_sql(INSERT)
    assert touched(db)
    with pytest.raises(KeyError), write():
        database.execute_sql(INSERT)
        raise KeyError
    assert not touched(db)
    assert events.highest(database.execute_sql) == 2
    with write():
        database.execute_sql(INSERT)
    assert touched(db)


def test_its_mode_is_the_databases(db: str) -> None:
    os.chmod(db, 0o660)
    path = f"{db}{events.SUFFIX}"
    events.ensure(path, db)
    assert os.stat(path).st_mode & 0o777 == 0o660
    os.unlink(path)
    os.symlink("/nowhere", path)
    events.announce(db)  # follows no link, and fails for nobody
    assert os.path.islink(path)


def test_a_database_of_an_earlier_release_has_none(db: str) -> None:
    with sqlite3.connect(":memory:") as other:

        def execute(sql: str) -> object:
            try:
                return other.execute(sql)
            except sqlite3.OperationalError as error:
                raise connect.peewee.OperationalError(str(error)) from None

        assert events.highest(execute) == 0
    other.close()
    database.execute_sql("DROP TABLE events")
    with write():
        database.execute_sql("INSERT INTO facts (name, value) VALUES ('x', 'y')")
    assert not touched(db)


def test_any_program_may_write_the_database(db: str) -> None:
    """Triggers need nothing of ours."""
    connect.close_database()
    with sqlite3.connect(db) as plain:
        plain.execute("PRAGMA trusted_schema = OFF")
        plain.execute("INSERT INTO quotas (name) VALUES ('small')")
        rows = plain.execute("SELECT type, actor, via FROM events").fetchall()
    plain.close()
    assert rows == [("capacity.changed", "", "")]
