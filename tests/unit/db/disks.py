"""Real faults of a database's file and disk, without root: no page, no room, no writing."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc.db.connect import database

PAGE = 4096


def zero_page_of(path: str, table: str) -> None:
    """Overwrite the root page of a table with zeros; no connection of this process may be open."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    (page,) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).fetchone()
    connection.close()
    with open(path, "r+b") as file:
        file.seek(PAGE * (page - 1))
        file.write(bytes(PAGE))


def page_of(path: str, number: int) -> bytes:
    """One page of the file."""
    return Path(path).read_bytes()[PAGE * (number - 1) : PAGE * number]


@contextmanager
def no_room() -> Iterator[None]:
    """SQLite finds no room for another page of this thread's database."""
    pages = database.execute_sql("PRAGMA page_count").fetchone()[0]
    database.execute_sql(f"PRAGMA max_page_count = {pages}")
    yield
    database.execute_sql("PRAGMA max_page_count = 1000000")


@contextmanager
def failing_writes(beyond: int = 1) -> Iterator[None]:
    """The kernel refuses what this process writes beyond so many bytes of any file: SQLITE_IOERR."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (beyond, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
