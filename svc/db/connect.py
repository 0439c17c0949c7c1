"""Open the one database of this process, with the pragmas that keep what was acknowledged.

For the web, worker and `svc admin` processes, each as the owner of the file.
Connections are kept per thread: peewee opens one at a thread's first query and
nothing here closes it before the thread ends. None may be open at a fork.
"""

from __future__ import annotations

import os
import pwd
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import peewee

from svc.db import migrate
from svc.errors import DatabaseRefused, Maintenance, StorageFull

BUSY_TIMEOUT_MS = 5000
PRAGMAS = {
    "busy_timeout": BUSY_TIMEOUT_MS,  # first: the next ones may have to wait
    "trusted_schema": "OFF",  # a planted database's views and triggers call no function of ours
    "journal_mode": "WAL",
    "synchronous": "FULL",  # every acknowledged write survives a power cut (0.21 ms instead of 0.05)
    "foreign_keys": "ON",
    "cell_size_check": "ON",
    "wal_autocheckpoint": 0,  # one checkpointer, the worker: SQLite < 3.51.3 can lose pages with several
}


class Database(peewee.SqliteDatabase):
    """peewee's own, with types for the calls that the rest of the program makes."""

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> sqlite3.Cursor:
        """Run one statement on this thread's connection."""
        cursor: sqlite3.Cursor = super().execute_sql(sql, params)
        return cursor

    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened when it is not."""
        connection: sqlite3.Connection = super().connection()
        return connection

    def rollback(self) -> None:
        """Roll back, unless SQLite has done so itself, as it does when the disk is full."""
        if self.connection().in_transaction:
            super().rollback()


database = Database(None, pragmas=PRAGMAS, timeout=BUSY_TIMEOUT_MS / 1000)


def open_database(path: str, *, create: bool = False) -> None:
    """Make `database` the file at path and try it; raises DatabaseRefused with the next command as hint.

    `create` is for `svc admin migrate` and `svc server --dev` alone: a missing
    file is made (0600) and a schema with migrations pending is let through.
    """
    path = os.path.abspath(path)
    check_file(path, create=create)
    database.init("file:" + quote(path) + "?mode=rw", uri=True)
    try:
        _check_schema(database.connection(), path, create=create)
    except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
        close_database()
        raise DatabaseRefused(f"{path} cannot be opened: {error}", hint=_command("doctor", path)) from None
    except DatabaseRefused:
        close_database()
        raise


def close_database() -> None:
    """Close this thread's connection, if there is one."""
    if not database.deferred and not database.is_closed():
        database.close()


@contextmanager
def write() -> Iterator[None]:
    """A transaction with the write lock from its start (BEGIN IMMEDIATE); inside another one, a savepoint.

    Keep it short and never wait for the helper in it: one writer at a time, for everybody.
    """
    try:
        with database.atomic("IMMEDIATE"):
            yield
    except peewee.OperationalError as error:
        reasons = " ".join(_reasons(error))
        if "disk is full" in reasons:
            raise StorageFull("the disk that holds the database is full") from error
        if "is locked" in reasons:
            raise Maintenance("the database is busy; try again", retry_after_s=5) from error
        raise


def _reasons(error: BaseException | None) -> Iterator[str]:
    """What was said, also before the roll-back of a savepoint that SQLite had already dropped failed."""
    while error is not None:
        yield str(error)
        error = error.__context__


def check_file(path: str, *, create: bool = False) -> None:
    """Refuse whatever is no regular file of ours, by lstat, before anything opens it.

    SQLite itself reads the header: closing a descriptor of our own on the file
    would drop the locks of every connection that this process has.
    """
    try:
        status = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        if not create:
            raise DatabaseRefused(f"there is no database at {path}", hint=_command("migrate", path)) from None
        _make_file(path)
        return
    except PermissionError:
        raise DatabaseRefused(
            f"{path} is not yours to open", hint=f"sudo svc admin doctor --db {path}"
        ) from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
        raise DatabaseRefused(f"{path} is {kind}; a database is a regular file", hint=_command("db-path", ""))
    if status.st_uid != os.geteuid():
        raise DatabaseRefused(
            f"{path} belongs to {_user_name(status.st_uid)}, not to {_user_name(os.geteuid())}",
            hint=f"sudo svc admin doctor --db {path}",
        )


def _make_file(path: str) -> None:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        raise DatabaseRefused(
            f"{path} cannot be created: {error.strerror}",
            hint=f"sudo svc admin migrate --db {path}",
        ) from None


def _check_schema(connection: sqlite3.Connection, path: str, *, create: bool) -> None:
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    newest = migrate.latest()
    if application not in (0, migrate.APPLICATION_ID) or (version and application == 0):
        raise DatabaseRefused(f"{path} is a database of another program", hint=_command("db-path", ""))
    if version > newest:
        raise DatabaseRefused(
            f"{path} is of a newer release (schema {version}, this program knows {newest})",
            hint="install the newer release of svc, or restore a backup made by this one",
        )
    if version < newest and not create:
        raise DatabaseRefused(
            f"{path} has {newest - version} migrations to apply", hint=_command("migrate", path)
        )


def _command(word: str, path: str) -> str:
    """The `svc admin` command that goes on from here, with sudo for whom it needs."""
    sudo = "" if os.geteuid() == 0 or os.access(os.path.dirname(path) or ".", os.W_OK) else "sudo "
    return f"{sudo}svc admin {word}" + (f" --db {path}" if path else "")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
