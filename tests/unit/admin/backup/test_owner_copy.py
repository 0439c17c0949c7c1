from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest

from svc.admin.backup import owner_copy
from svc.db.lock import hold
from svc.errors import DatabaseDamaged, DatabaseRefused, StorageFull, SvcError
from svc.host.owner import Owner, run_as

ME = os.getpid()


def copied(database: str, folder: Path) -> Path:
    path = folder / "copy.db"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        owner_copy.copy(database, descriptor, 2**40, os.getpid())
    finally:
        os.close(descriptor)
    return path


def rows(path: str | Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    found = connection.execute(query).fetchall()
    connection.close()
    return found


def test_the_copy_is_one_plain_file(plain: str, folder: Path) -> None:
    """A WAL database's header would have every reader make files beside the snapshot."""
    path = copied(plain, folder)
    assert path.read_bytes()[18:20] == b"\1\1"
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    assert rows(path, "SELECT count(*) FROM notes") == [(2000,)]
    assert os.listdir(folder) == ["copy.db"]
    assert owner_copy.size_of(plain, os.getpid()) == {"bytes": path.stat().st_size}


def test_a_copy_beside_a_writer_is_one_state(plain: str, folder: Path) -> None:
    """Each transaction moves a part from one row to another: the sum is the same in every state."""
    with sqlite3.connect(plain) as connection:
        connection.execute("CREATE TABLE parts (id INTEGER PRIMARY KEY, amount INTEGER, filler TEXT)")
        connection.executemany("INSERT INTO parts VALUES (?, 100, ?)", ((n, "x" * 3000) for n in range(400)))
    connection.close()
    stop, written = threading.Event(), []

    def write() -> None:
        writer = sqlite3.connect(plain, isolation_level=None)
        while not stop.is_set():
            writer.execute("BEGIN IMMEDIATE")
            place = len(written) % 399
            writer.execute("UPDATE parts SET amount = amount - 7 WHERE id = ?", (place,))
            writer.execute("UPDATE parts SET amount = amount + 7 WHERE id = ?", (399 - place,))
            writer.execute("COMMIT")
            written.append(place)
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            path = copied(plain, folder)
            assert rows(path, "SELECT sum(amount) FROM parts") == [(40000,)]
            assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    finally:
        stop.set()
        thread.join()
    assert written


def test_what_is_only_in_the_log_is_copied_and_the_log_stays(plain: str, folder: Path) -> None:
    """A service that was killed: nothing has written its log back, and a backup does not do it."""
    writer = sqlite3.connect(plain)
    writer.execute("PRAGMA wal_autocheckpoint = 0")
    writer.execute("INSERT INTO notes (text) VALUES ('newest')")
    writer.commit()
    crashed = folder / "crashed"
    crashed.mkdir()
    for suffix in ("", "-wal"):
        (crashed / f"svc.db{suffix}").write_bytes(Path(plain + suffix).read_bytes())
    writer.close()
    (crashed / "svc.db").chmod(0o600)
    log = (crashed / "svc.db-wal").read_bytes()
    path = copied(str(crashed / "svc.db"), folder)
    assert rows(path, "SELECT count(*) FROM notes WHERE text = 'newest'") == [(1,)]
    assert (crashed / "svc.db-wal").read_bytes() == log


def test_a_reader_does_not_hinder_it(plain: str, folder: Path) -> None:
    reader = sqlite3.connect(plain, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM notes").fetchone()
    with sqlite3.connect(plain) as writer:
        writer.execute("INSERT INTO notes (text) VALUES ('after the reader')")
    writer.close()
    assert rows(copied(plain, folder), "SELECT count(*) FROM notes") == [(2001,)]
    reader.close()


def test_a_database_that_stays_locked(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Outside WAL mode a writer blocks readers; Python's backup would wait for ever."""
    monkeypatch.setattr(owner_copy, "BUSY_S", 0.2)
    path = tmp_path / "locked.db"
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("CREATE TABLE t (a)")
    path.chmod(0o600)
    writer.execute("BEGIN EXCLUSIVE")
    with pytest.raises(SvcError, match=r"busy|locked"):
        copied(str(path), folder)
    writer.close()


def test_what_is_no_database(tmp_path: Path, folder: Path) -> None:
    path = tmp_path / "svc.db"
    with pytest.raises(DatabaseRefused, match="there is no database"):
        owner_copy.size_of(str(path), ME)
    path.write_bytes(b"")
    path.chmod(0o600)
    with pytest.raises(DatabaseRefused, match="is empty"):
        owner_copy.size_of(str(path), ME)
    path.write_bytes(os.urandom(9000))
    with pytest.raises(DatabaseDamaged, match="not a database"):
        owner_copy.size_of(str(path), ME)


def test_what_must_stay_free_stays_free(plain: str, folder: Path, needs_root: None) -> None:
    """A database that grows after its size was asked for, or whose content has taken SQLite over."""
    for part in (folder, *folder.parents):
        part.chmod(part.stat().st_mode | 0o011)
    for path in (Path(plain), Path(plain).parent):
        os.chown(path, 65534, 65534)
    descriptor, parent = os.open(folder / "copy.db", os.O_RDWR | os.O_CREAT, 0o600), os.getpid()

    def work(most: int) -> object:
        return owner_copy.copy(plain, descriptor, most, parent)

    with pytest.raises(StorageFull, match="grew while it was copied"):
        run_as(Owner(65534, 65534), lambda: work(100_000))
    assert os.fstat(descriptor).st_size <= 100_000
    os.ftruncate(descriptor, 0)
    assert run_as(Owner(65534, 65534), lambda: work(10_000_000)) == {}
    os.close(descriptor)


def test_a_raw_copy_has_both_files_as_they_are(plain: str, folder: Path) -> None:
    Path(plain).write_bytes(damaged := os.urandom(3 * owner_copy.PART + 17))
    Path(f"{plain}-wal").write_bytes(b"a log")
    os.chmod(f"{plain}-wal", 0o600)
    files = [os.open(folder / name, os.O_RDWR | os.O_CREAT, 0o600) for name in ("main", "log")]
    assert owner_copy.copy_raw(plain, *files, os.getpid()) == {"unreadable_bytes": 0}
    for descriptor in files:
        os.close(descriptor)
    assert (folder / "main").read_bytes() == damaged
    assert (folder / "log").read_bytes() == b"a log"


def test_a_raw_copy_needs_a_stopped_service(plain: str, folder: Path) -> None:
    """A copy of files that somebody writes is a copy of no state: `cp` is not a backup."""
    descriptor = os.open(folder / "main", os.O_RDWR | os.O_CREAT, 0o600)
    with hold(plain), pytest.raises(DatabaseRefused, match="in use by svc server") as caught:
        owner_copy.copy_raw(plain, descriptor, descriptor, os.getpid())
    assert caught.value.hint.startswith("stop th")
    os.close(descriptor)
    assert (folder / "main").read_bytes() == b""


def test_places_that_cannot_be_read_are_zeros(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fails at one place: the rest is copied."""
    path = tmp_path / "svc.db"
    path.write_bytes(content := os.urandom(10 * owner_copy.SECTOR))
    bad, real = 3 * owner_copy.SECTOR + 5, os.pread

    def failing(descriptor: int, size: int, at: int) -> bytes:
        if at <= bad < at + size:
            raise OSError(5, "Input/output error")
        return real(descriptor, size, at)

    target = os.open(tmp_path / "copy", os.O_RDWR | os.O_CREAT, 0o600)
    monkeypatch.setattr(os, "pread", failing)
    assert owner_copy._copy_file(str(path), target) == owner_copy.SECTOR
    monkeypatch.undo()
    os.close(target)
    sector = slice(3 * owner_copy.SECTOR, 4 * owner_copy.SECTOR)
    expected = bytearray(content)
    expected[sector] = bytes(owner_copy.SECTOR)
    assert (tmp_path / "copy").read_bytes() == expected
