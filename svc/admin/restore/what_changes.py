"""What the database has that a snapshot has not: said before it is replaced, and used against revivals.

For processes of the database's owner: both files are SQLite's to read. What they return is untrusted.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import Any

from svc.admin.backup import owner_copy
from svc.admin.backup.sqlite_descriptor import as_path, end_with
from svc.errors import SvcError

# What people count: the table, what tells a row from others, what it is called, and when it was changed
KINDS = {
    "user": ("users", "id", "name", "updated_at"),
    "template": ("templates", "id", "name", "updated_at"),
    "workspace": ("workspaces", "id", "name", "updated_at"),
    "token": ("tokens", "id", "name", "''"),
    "quota": ("quotas", "name", "name", "''"),
    "operation": ("operations", "id", "kind", "''"),
    "audit row": ("audit", "id", "''", "''"),
}
# When the installation began: a database and its snapshots have it in common
BIRTH = "SELECT applied_at FROM schema_migrations WHERE number = 1"
NAMES_MAX = 10
NAME_MAX = 100


def compare(database: str, snapshot: int, remembered: int, parent: int) -> dict[str, Any]:
    """Rows of the database that the snapshot has not, by kind.

    Returns {"readable", "related", "newer", "changed", "recorded"}. `related`: of the same installation;
    `recorded` is the hash of the snapshot's audit row `remembered`, empty without one.
    """
    end_with(parent)
    with as_path(snapshot) as path:
        address = f"file:{path}?mode=ro&immutable=1"
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as old:
            old.execute("PRAGMA trusted_schema = OFF")
            recorded = _hash(old, remembered)
            newer: dict[str, Any] = {}
            changed: dict[str, int] = {}
            births: list[str] = []
            readable = _compare_all(database, old, newer, changed, births)
    related = len(set(births)) == 1
    return {
        "readable": readable,
        "related": related,
        "newer": newer,
        "changed": changed,
        "recorded": recorded,
    }


def checked(untrusted: Any) -> dict[str, Any]:
    """The result of `compare` with the types that it must have; raises SvcError."""
    try:
        newer, changed = untrusted["newer"], untrusted["changed"]
        numbers = [*changed.values(), *(each["count"] for each in newer.values())]
        texts = [untrusted["recorded"], *(name for each in newer.values() for name in each["names"])]
        right = (
            type(untrusted["readable"]) is type(untrusted["related"]) is bool
            and {*newer, *changed} <= KINDS.keys()
            and all(type(number) is int and 0 <= number < 2**63 for number in numbers)
            and all(type(text) is str and len(text) <= NAME_MAX for text in texts)
            and all(len(each["names"]) <= NAMES_MAX for each in newer.values())
        )
        if right:
            return dict(untrusted)
    except (TypeError, KeyError, AttributeError):
        pass
    raise SvcError("comparing the snapshot returned no usable result")


def _compare_all(
    database: str, old: sqlite3.Connection, newer: dict[str, Any], changed: dict[str, int], births: list[str]
) -> bool:
    """Compare each kind; False when the database is missing or cannot be read."""
    if not os.path.lexists(database):
        return False
    try:
        new = owner_copy.opened(database)
        births += [str(one.execute(BIRTH).fetchone()) for one in (old, new)]
        for kind, (table, key, name, at) in KINDS.items():
            query = f"SELECT {key}, {name}, {at} FROM {table} ORDER BY {key}"  # noqa: S608  of KINDS
            before = {row[0]: row[2] for row in _rows(old, table, query)}
            _compare_rows(kind, _rows(new, table, query), before, newer, changed)
        owner_copy.close_unwritten(new, database)
    except (sqlite3.Error, SvcError):
        newer.clear()
        changed.clear()
        return False
    return True


def _compare_rows(
    kind: str,
    rows: list[tuple[Any, ...]],
    before: dict[Any, Any],
    newer: dict[str, Any],
    changed: dict[str, int],
) -> None:
    names = [str(name)[:NAME_MAX] for key, name, _ in rows if key not in before]
    if names:
        visible = sorted({name for name in names if name})[:NAMES_MAX]
        newer[kind] = {"count": len(names), "names": visible}
    others = sum(1 for key, _, at in rows if key in before and before[key] != at)
    if others:
        changed[kind] = others


def _rows(connection: sqlite3.Connection, table: str, query: str) -> list[tuple[Any, ...]]:
    """The rows; none in a schema that has no such table yet."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (table,)).fetchone():
        return []
    return connection.execute(query).fetchall()


def _hash(connection: sqlite3.Connection, number: int) -> str:
    try:
        row = connection.execute("SELECT hash FROM audit WHERE id = ?", (number,)).fetchone()
    except sqlite3.Error:  # of a release before the audit
        return ""
    return str(row[0])[:NAME_MAX] if row else ""
