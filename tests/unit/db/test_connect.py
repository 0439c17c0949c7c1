from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import nullcontext
from pathlib import Path

import peewee
import pytest

from svc.db import connect, migrate
from svc.db.connect import close_database, database, open_database, write
from svc.errors import DatabaseRefused, Maintenance, StorageFull

PRAGMAS_IN_FORCE = {
    "journal_mode": "wal",
    "synchronous": 2,  # FULL
    "foreign_keys": 1,
    "busy_timeout": 5000,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "wal_autocheckpoint": 0,
}


@pytest.fixture(autouse=True)
def quick_database() -> None:
    """Here connections have the pragmas of the product."""


def facts() -> list[str]:
    return [name for (name,) in database.execute_sql("SELECT name FROM facts")]


def note(name: str, value: str) -> None:
    database.execute_sql("INSERT INTO facts (name, value) VALUES (?, ?)", (name, value))


def test_every_connection_has_the_pragmas(migrated: str) -> None:
    open_database(migrated)

    def in_force() -> dict[str, object]:
        return {name: database.execute_sql(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS_IN_FORCE}

    assert in_force() == PRAGMAS_IN_FORCE
    seen: list[dict[str, object]] = []

    def work() -> None:
        seen.append(in_force())
        close_database()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [PRAGMAS_IN_FORCE]


def test_a_thread_keeps_its_own_connection(migrated: str) -> None:
    open_database(migrated)
    mine, others = database.connection(), []

    def work() -> None:
        others.append(database.connection() is mine)
        others.append(database.connection() is database.connection())
        close_database()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert others == [False, True]
    assert database.connection() is mine


def test_a_new_database_and_its_companions_are_the_owners_alone(path: str) -> None:
    open_database(path, create=True)
    migrate.apply(database.connection())
    for name in os.listdir(os.path.dirname(path)):
        assert stat.S_IMODE(os.stat(os.path.join(os.path.dirname(path), name)).st_mode) == 0o600


@pytest.mark.parametrize("name", ["what?mode=memory", "50%41", "a#b", "with space", "dots:and;more"])
def test_a_path_with_signs_of_a_uri_is_a_path(tmp_path: Path, name: str) -> None:
    open_database(str(tmp_path / name), create=True)
    migrate.apply(database.connection())
    close_database()
    assert os.listdir(tmp_path) == [name]


def test_only_migrate_may_create(path: str) -> None:
    with pytest.raises(DatabaseRefused) as refused:
        open_database(path)
    assert refused.value.hint.endswith(f"svc admin migrate --db {path}")
    assert not os.path.exists(path)


def test_an_empty_database_says_migrate(path: str) -> None:
    open_database(path, create=True)
    close_database()
    with pytest.raises(DatabaseRefused, match="is empty"):
        open_database(path)


def test_a_database_with_migrations_pending_says_migrate(migrated: str) -> None:
    with sqlite3.connect(migrated) as connection:
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    with pytest.raises(DatabaseRefused, match="pending migrations"):
        open_database(migrated)


def make_symlink(path: str) -> None:
    os.symlink("elsewhere.db", path)


def make_text(path: str) -> None:
    Path(path).write_text("root:x:0:0:root:/root:/bin/bash\n" * 100)


def make_truncated(path: str) -> None:
    Path(path).write_bytes(b"SQLite format 3\0" + b"\x10\x00" + b"\0" * 40)


def make_foreign(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE moz_places (id INTEGER)")
    connection.execute("PRAGMA user_version = 1")
    connection.close()


def make_other_application(path: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA application_id = 1234")
    connection.close()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_symlink, "a symbolic link"),
        (os.mkfifo, "not a regular file"),
        (os.mkdir, "not a regular file"),
        (make_text, "not a database"),
        (make_truncated, "not a database"),
        (make_foreign, "another program"),
        (make_other_application, "another program"),
    ],
)
@pytest.mark.parametrize("create", [False, True])
def test_what_is_no_database_of_ours_is_refused(path: str, make: object, reason: str, create: bool) -> None:
    make(path)  # type: ignore[operator]
    with pytest.raises(DatabaseRefused, match=reason):
        open_database(path, create=create)
    assert database.deferred or database.is_closed()


def test_a_database_of_a_newer_release_is_refused(migrated: str) -> None:
    connection = sqlite3.connect(migrated)
    connection.execute("PRAGMA user_version = 9999")
    connection.close()
    for create in (False, True):
        with pytest.raises(DatabaseRefused, match="newer release"):
            open_database(migrated, create=create)


def test_a_database_of_somebody_else_is_refused(migrated: str, needs_root: None) -> None:
    os.chown(migrated, 65534, 65534)
    with pytest.raises(DatabaseRefused, match="belongs to nobody, not to root"):
        open_database(migrated)


def test_a_write_that_fails_leaves_nothing(migrated: str) -> None:
    open_database(migrated)
    with pytest.raises(ZeroDivisionError), write():
        note("one", "1")
        _ = 1 / 0
    assert facts() == []


def test_a_write_inside_another_is_a_savepoint(migrated: str) -> None:
    open_database(migrated)
    with write():
        note("outer", "1")
        with pytest.raises(peewee.IntegrityError), write():
            note("inner", "1")
            note("inner", "2")
    assert facts() == ["outer"]


def test_a_write_takes_the_lock_at_its_start(migrated: str) -> None:
    open_database(migrated)
    other = sqlite3.connect(migrated, timeout=0, isolation_level=None)
    with write(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()


def test_a_busy_database_is_a_retryable_answer(migrated: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connect, "WRITE_WAIT_S", 0.01)
    open_database(migrated)
    other = sqlite3.connect(migrated, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Maintenance) as busy, write():
        pytest.fail("the lock is somebody else's")
    assert busy.value.retryable
    assert busy.value.retry_after_s
    other.close()


@pytest.mark.parametrize("nested", [False, True])
def test_a_full_disk_is_said_and_nothing_is_half_done(migrated: str, nested: bool) -> None:
    open_database(migrated)
    pages = database.execute_sql("PRAGMA page_count").fetchone()[0]
    database.execute_sql(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(StorageFull), write():
        note("small", "1")
        with write() if nested else nullcontext():
            note("large", "x" * 1_000_000)
    assert facts() == []
    with write():
        note("small", "1")
    assert facts() == ["small"]


def test_a_planted_view_calls_no_function(migrated: str) -> None:
    connection = sqlite3.connect(migrated)
    connection.execute("CREATE VIEW planted AS SELECT load_extension('/tmp/evil.so')")
    connection.close()
    open_database(migrated)
    with pytest.raises(peewee.OperationalError, match="unsafe use"):
        database.execute_sql("SELECT * FROM planted").fetchall()
