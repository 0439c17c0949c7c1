"""The one database of this process: opening it, with its pragmas, and transactions.

For the web, worker and `svc admin` processes, each as the owner of the file. Each
thread has a connection of its own, which peewee opens at the thread's first query
and which stays open until the thread ends. None may be open at a fork.
"""

from __future__ import annotations

import os
import pwd
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import peewee

from svc.db import migrate
from svc.db.location import refuse_irregular
from svc.errors import DatabaseRefused, Maintenance, StorageFull

BUSY_TIMEOUT_MS = 5000
PRAGMAS = {
    "busy_timeout": BUSY_TIMEOUT_MS,  # first, since the next pragmas may have to wait
    "trusted_schema": "OFF",  # views and triggers of a forged database must not call functions
    "journal_mode": "WAL",
    "synchronous": "FULL",  # acknowledged writes survive a power cut; a commit takes 0.21 ms instead of 0.05
    "foreign_keys": "ON",
    "cell_size_check": "ON",
    "wal_autocheckpoint": 0,  # only the worker checkpoints: SQLite < 3.51.3 can lose pages with several
}


class Database(peewee.SqliteDatabase):
    """peewee's SqliteDatabase with type annotations."""

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> sqlite3.Cursor:
        """Run one statement on this thread's connection."""
        cursor: sqlite3.Cursor = super().execute_sql(sql, params)
        return cursor

    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened if necessary."""
        connection: sqlite3.Connection = super().connection()
        return connection

    def rollback(self) -> None:
        """Roll back, unless SQLite has already done so, as when the disk is full."""
        if self.connection().in_transaction:
            super().rollback()


database = Database(None, pragmas=PRAGMAS, timeout=BUSY_TIMEOUT_MS / 1000)


def open_database(path: str, *, create: bool = False) -> None:
    """Open the file at path as `database`; raises DatabaseRefused with the next command as hint.

    `create` is only for `svc admin migrate` and `svc server --dev`: it creates a
    missing file (0600) and accepts a schema with pending migrations.
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
    """Close this thread's connection, if it is open."""
    if not database.deferred and not database.is_closed():
        database.close()


@contextmanager
def write() -> Iterator[None]:
    """A transaction that takes the write lock at its begin (BEGIN IMMEDIATE); nested, a savepoint.

    Keep it short and never call the helper in it: there is one writer at a time on the host.
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
    """The messages of the error and its contexts, since a failed rollback hides the first error."""
    while error is not None:
        yield str(error)
        error = error.__context__


def check_file(path: str, *, create: bool = False) -> None:
    """Refuse anything but a regular file of this user, by lstat, before SQLite opens it.

    The file is not opened here: closing another descriptor of the file would drop the
    POSIX locks of all connections of this process.
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
            f"no permission to open {path}", hint=f"sudo svc admin doctor --db {path}"
        ) from None
    refuse_irregular(path, status.st_mode)
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
            f"{path} is of a newer release (schema {version}; this program supports {newest})",
            hint="install the newer release of svc, or restore a backup of this release",
        )
    if version < newest and not create:
        raise DatabaseRefused(
            f"{path} has {newest - version} pending migrations", hint=_command("migrate", path)
        )


def _command(name: str, path: str) -> str:
    """The next `svc admin` command, with sudo where it is needed."""
    sudo = "" if os.geteuid() == 0 or os.access(os.path.dirname(path) or ".", os.W_OK) else "sudo "
    return f"{sudo}svc admin {name}" + (f" --db {path}" if path else "")


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
