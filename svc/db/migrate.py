"""Numbered SQL files applied once each, for `svc admin migrate` and `svc server --dev`.

The statements of a file and its bookkeeping row are applied in one IMMEDIATE
transaction, so that an error leaves the old schema. (`executescript` would commit
first and leave half a migration.) A file is never edited after its release; its
checksum is stored and compared. Works on a plain sqlite3 connection and takes no
lock: the caller of `apply` holds `svc.db.lock`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sqlite3
from collections.abc import Iterator
from typing import NamedTuple

from svc.errors import DatabaseRefused
from svc.host.ids import now

# Identifies a SQLite file of svc ("svc" and a format version), so that no other file is changed.
APPLICATION_ID = 0x73766301
FILE_NAME = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
BOOKKEEPING = """CREATE TABLE IF NOT EXISTS schema_migrations (
    number INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    sha256 TEXT NOT NULL,
    applied_at TEXT NOT NULL
) STRICT"""
_NAMED_MAX = 3  # missing parts of a schema in a message
# Denied to migrations: transactions and pragmas belong to the runner.
DENIED = frozenset({sqlite3.SQLITE_TRANSACTION, sqlite3.SQLITE_SAVEPOINT, sqlite3.SQLITE_ATTACH,
                    sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA})  # fmt: skip


class Migration(NamedTuple):
    """One file: its number, its name and its text."""

    number: int
    name: str
    sql: str

    @property
    def sha256(self) -> str:
        """The checksum in the bookkeeping row."""
        return hashlib.sha256(self.sql.encode()).hexdigest()


class Applied(NamedTuple):
    """One bookkeeping row."""

    number: int
    name: str
    sha256: str
    applied_at: str


_APPLIED = "SELECT number, name, sha256, applied_at FROM schema_migrations ORDER BY number"


def schema_folder() -> str:
    """The directory `schema`: in the installed package, or in the checkout beside it."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    installed = os.path.join(package, "schema")
    if os.path.isdir(installed):
        return installed
    return os.path.join(os.path.dirname(package), "schema")


def folder() -> str:
    """The directory of the migrations."""
    return os.path.join(schema_folder(), "migrations")


def known(path: str | None = None) -> list[Migration]:
    """All migrations of this program in order; gaps, duplicates and stray files are refused."""
    path = path or folder()
    found = []
    for name in sorted(os.listdir(path)):
        match = FILE_NAME.fullmatch(name)
        if not match:
            if name.endswith(".sql"):
                raise DatabaseRefused(f"{os.path.join(path, name)} is not named NNNN_name.sql")
            continue
        with open(os.path.join(path, name), encoding="utf-8", newline="") as file:
            found.append(Migration(int(match[1]), match[2], file.read()))
    numbers = [migration.number for migration in found]
    if numbers != list(range(1, len(found) + 1)):
        raise DatabaseRefused(f"the migrations in {path} are not numbered 1 to {len(found)}: {numbers}")
    return found


def latest(path: str | None = None) -> int:
    """The number of the newest migration, from the file names only."""
    numbers = [int(match[1]) for match in map(FILE_NAME.fullmatch, os.listdir(path or folder())) if match]
    return max(numbers, default=0)


def applied(connection: sqlite3.Connection) -> list[Applied]:
    """The bookkeeping rows in order; none for a new database. Reads only."""
    tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    if "schema_migrations" not in tables:
        if tables:
            raise DatabaseRefused(
                "the database belongs to another program: it has tables but no migrations of svc"
            )
        return []
    return [Applied(*row) for row in connection.execute(_APPLIED)]


def pending(connection: sqlite3.Connection, path: str | None = None) -> list[Migration]:
    """The pending migrations; refuses a newer database and a history of other migrations. Reads only."""
    return pending_of(applied(connection), known(path))


def pending_of(rows: list[Applied], migrations: list[Migration]) -> list[Migration]:
    """As pending, of these bookkeeping rows and these known migrations."""
    newest = rows[-1].number if rows else 0
    if newest > len(migrations):
        raise DatabaseRefused(
            f"the database is of a newer release (schema {newest}; this program supports {len(migrations)})",
            hint="install the newer release of svc, or restore a backup of this release",
        )
    if [row.number for row in rows] != list(range(1, len(rows) + 1)):
        raise DatabaseRefused("the database's list of applied migrations has a gap")
    for row, migration in zip(rows, migrations, strict=False):
        if row.sha256 != migration.sha256:
            raise DatabaseRefused(
                f"migration {row.number:04d}_{migration.name} was edited after it was applied",
                hint="reinstall the release that created the database, or restore a backup",
            )
    return migrations[len(rows) :]


def difference(connection: sqlite3.Connection) -> str:
    """What of the newest schema is missing, or whose migrations were applied; empty for none. Reads only.

    Names are compared, not the statements, whose text depends on SQLite's release.
    """
    try:
        pending(connection)
    except DatabaseRefused as error:
        return error.message
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as fresh:
        apply(fresh)  # 50 ms
        absent = sorted(_objects(fresh) - _objects(connection))
    if not absent:
        return ""
    named = ", ".join(absent[:_NAMED_MAX])
    return f"the schema lacks {named}{f' and {more} more' if (more := len(absent) - _NAMED_MAX) > 0 else ''}"


def _objects(connection: sqlite3.Connection) -> set[str]:
    """The tables, each column, the indexes and the triggers of a schema."""
    names = {
        f"the {kind} {name}"
        for kind, name in connection.execute(
            "SELECT type, name FROM sqlite_schema WHERE name NOT LIKE 'sqlite!_%' ESCAPE '!'"
        )
    }
    columns = connection.execute(
        "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE m.type = 'table'"
    )
    return names | {f"the column {table}.{column}" for table, column in columns}


def apply(connection: sqlite3.Connection, path: str | None = None) -> list[Migration]:
    """Apply the pending migrations, each in its own transaction, and return them.

    Raises sqlite3.Error for a failing migration, which is rolled back; earlier ones stay.
    """
    migrations = pending(connection, path)
    # Must be off to rebuild a table, and cannot change in a transaction; checked before each commit.
    connection.execute("PRAGMA foreign_keys = OFF")
    try:
        for migration in migrations:
            _apply_one(connection, migration)
    finally:
        connection.execute("PRAGMA foreign_keys = ON")
    return migrations


def _apply_one(connection: sqlite3.Connection, migration: Migration) -> None:
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.execute(BOOKKEEPING)
        connection.set_authorizer(_only_schema_and_rows)
        try:
            for statement in statements(migration.sql):
                connection.execute(statement)
        finally:
            connection.set_authorizer(None)
        broken = connection.execute("PRAGMA foreign_key_check").fetchone()
        if broken:
            raise sqlite3.IntegrityError(f"{migration.name} violates a foreign key of {broken[0]}")
        connection.execute(
            "INSERT INTO schema_migrations (number, name, sha256, applied_at) VALUES (?, ?, ?, ?)",
            (migration.number, migration.name, migration.sha256, now()),
        )
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {migration.number}")
        connection.execute("COMMIT")
    except BaseException:  # also an interrupt must leave the old schema
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def statements(sql: str) -> Iterator[str]:
    """The statements of a migration file; refuses a last one without its semicolon."""
    buffer = ""
    for piece in re.split(r"(?<=;)", sql):
        buffer += piece
        if sqlite3.complete_statement(buffer):
            yield buffer.strip()
            buffer = ""
    rest = re.sub(r"--[^\n]*|/\*.*?\*/", "", buffer, flags=re.DOTALL).strip()
    if rest:
        raise sqlite3.ProgrammingError(f"a migration ends with an incomplete statement: {rest[:60]}")


def _only_schema_and_rows(action: int, name: str | None, *_more: str | None) -> int:
    if action == sqlite3.SQLITE_PRAGMA and name == "quick_check":
        return sqlite3.SQLITE_OK  # SQLite's own check of existing rows against the CHECK of a new column
    return sqlite3.SQLITE_DENY if action in DENIED else sqlite3.SQLITE_OK
