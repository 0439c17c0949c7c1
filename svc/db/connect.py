"""The one database of this process: opening it, with its pragmas, and transactions.

For the web, worker and `svc admin` processes, each as the owner of the file. Each
thread has a connection of its own, which peewee opens at the thread's first query
and which stays open until the thread ends. None may be open at a fork.
"""

from __future__ import annotations

import os
import pwd
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any
from urllib.parse import quote

import peewee

from svc.db import acting, condition, events, faults, held, migrate, reserve
from svc.db.location import refuse_irregular
from svc.db.turns import NoTurn, Turns
from svc.errors import DatabaseDamaged, DatabaseRefused, StorageFailed
from svc.host.owner import admin_command, repair_command
from svc.host.sharing import is_shared

BUSY_TIMEOUT_MS = 5000
WRITE_WAIT_S = 5.0  # for the write lock: behind this process's other threads, then behind other processes
RETRY_S = 0.001  # constant, so that processes get equal shares; SQLite's own pauses grow to 0.1 s
BETWEEN_S = 5 * RETRY_S  # from one transaction of long work to the next
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
    """peewee's SqliteDatabase with type annotations, and faults of the disk as errors of ours."""

    path = ""  # of the open database
    notes_faults = False  # in the service: a damaged file or a failing disk becomes its condition

    def execute_sql(self, sql: str, params: Sequence[Any] | None = None) -> sqlite3.Cursor:
        """Run one statement on this thread's connection; raises what raise_fault does."""
        try:
            cursor: sqlite3.Cursor = super().execute_sql(sql, params)
        except peewee.DatabaseError as error:
            raise_fault(error)
            raise
        return cursor

    def connection(self) -> sqlite3.Connection:
        """This thread's connection, opened if necessary."""
        connection: sqlite3.Connection = super().connection()
        return connection

    def begin(self, lock_type: str | None = None) -> None:
        """Begin a transaction; while another process writes, try again for WRITE_WAIT_S."""
        deadline = time.monotonic() + WRITE_WAIT_S
        with self.waiting(0):
            while True:
                try:
                    super().begin(lock_type)
                    return
                except peewee.OperationalError as error:
                    if "is locked" not in str(error) or time.monotonic() > deadline:
                        raise
                time.sleep(RETRY_S)

    @contextmanager
    def waiting(self, most_ms: int) -> Iterator[None]:
        """A block in which SQLite itself waits this long for other connections."""
        connection = self.connection()
        connection.execute(f"PRAGMA busy_timeout = {most_ms}")
        try:
            yield
        finally:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")

    def rollback(self) -> None:
        """Roll back, unless SQLite has already done so, as when the disk is full."""
        if self.connection().in_transaction:
            super().rollback()


database = Database(None, pragmas=PRAGMAS, timeout=BUSY_TIMEOUT_MS / 1000)
_turns = Turns()


def open_database(path: str, *, create: bool = False) -> None:
    """Open the file at path as `database`; raises DatabaseRefused with the next command as hint.

    `create` is only for `svc admin migrate` and `svc server --dev`: it creates a
    missing file (0600) and accepts a schema with pending migrations.
    """
    path = os.path.abspath(path)
    check_file(path, create=create)
    database.init("file:" + quote(path) + "?mode=rw", uri=True)
    database.path = path
    held.numbers.database = path
    try:
        _check_schema(database.connection(), path, create=create)
    except (peewee.DatabaseError, sqlite3.DatabaseError) as error:
        close_database()
        fault = faults.error_of(error)
        if isinstance(fault, StorageFailed):
            raise fault from None
        hint = faults.RESTORE if isinstance(fault, DatabaseDamaged) else _command("doctor", path)
        raise DatabaseRefused(f"{path} cannot be opened: {error}", hint=hint) from None
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
    Users whose threads of this process wait have turns. Raises Maintenance after
    WRITE_WAIT_S without a turn, and as long again without the lock; StorageFull,
    StorageFailed, DatabaseDamaged.
    """
    is_outer = database.deferred or not database.in_transaction()
    if is_outer:
        require_writable(database.path)
    try:
        turn = _turns.turn(WRITE_WAIT_S, acting.current().user) if is_outer else nullcontext()
        with turn, database.atomic("IMMEDIATE"):
            before = events.highest(database.execute_sql) if is_outer else 0
            yield
            has_events = is_outer and events.name_actor(database.execute_sql, before)
        if has_events:
            events.announce(database.path)
    except NoTurn as error:
        raise faults.busy_now() from error
    except peewee.DatabaseError as error:
        raise_fault(error, busy=True)
        raise


def let_others_write() -> None:
    """Between the transactions of long work: those who wait for the lock would hardly ever find it free."""
    time.sleep(BETWEEN_S)


def require_writable(path: str) -> None:
    """Raise DatabaseDamaged, or StorageFull for who is not entitled to the reserve of a full disk."""
    wrong = condition.find_damage(path)
    if wrong is not None:
        raise wrong.error
    reserve.require_room(path)


def raise_fault(error: BaseException, *, busy: bool = False) -> None:
    """Raise an error of SQLite as the error of ours that it is; returns when it is none of those."""
    found = faults.error_of(error, busy=busy)
    if found is None:
        return
    if database.notes_faults:
        condition.note(database.path, found)
    raise found from error


def check_file(path: str, *, create: bool = False) -> None:
    """Refuse anything but a regular file of this user, by lstat, before SQLite opens it.

    To the app's accounts the file of `svc` is theirs, by their group.

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
    if status.st_uid != os.geteuid() and not is_shared(status):
        raise DatabaseRefused(
            f"{path} belongs to {_user_name(status.st_uid)}, not to {_user_name(os.geteuid())}",
            hint=repair_command(path),
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
    if not version and not create and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        raise DatabaseRefused(f"{path} is empty", hint=_command("migrate", path))
    if version < newest and not create:
        raise DatabaseRefused(
            f"{path} has {newest - version} pending migrations", hint=_command("migrate", path)
        )


def _command(name: str, path: str) -> str:
    """The next `svc admin` command, with sudo where it is needed."""
    return admin_command(name, path)


def _user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
