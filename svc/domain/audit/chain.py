"""The chain of the audit's rows: the hash of a row covers its own values and the hash before it.

The hash is the SHA-256 of the previous row's hash and the row's values as JSON. The chain begins
with the first row, or behind the last one that was moved to an archive (archive.py).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from typing import Any, NamedTuple

from svc.db.connect import database

ROW_MAX = 2 * 1024 * 1024  # bytes: larger than every row that any release wrote
WALK_ROWS = 1000  # rows of one query during verification
LOWEST_ID = -(2**63)  # ids begin with 1; verification also finds forged rows below
COLUMNS = "id, at, user_id, user_name, via, address, action, target, outcome, request_id, detail_json"
# SQLite's messages for a value longer than ROW_MAX and for text that is not UTF-8.
_FORGED_ROW = ("too big", "Could not decode")

canonical = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Head(NamedTuple):
    """A row of the chain: its id and its hash."""

    id: int
    hash: str


class Verified(NamedTuple):
    """How far the chain is intact.

    `rows` intact ones, of which `chained` have a hash (those of releases before the chain come first
    and have none), the last of them, and the id of the first row that was changed, removed, moved or
    inserted, or None.
    """

    rows: int
    chained: int
    head: Head
    broken_at: int | None


def link(before: str, values: tuple[Any, ...]) -> str:
    """The hash of a row: over the previous row's hash and its own values as JSON, in column order."""
    return hashlib.sha256(f"{before}\n{canonical(values)}".encode("ascii")).hexdigest()


def newest() -> Head:
    """The newest row, or id 0. Rows of releases without the chain have an empty hash."""
    row = database.execute_sql("SELECT id, hash FROM audit ORDER BY id DESC LIMIT 1").fetchone()
    return Head(*row) if row else Head(0, "")


def archived() -> Head:
    """The last row that was moved to an archive, or id 0."""
    row = database.execute_sql("SELECT id, hash FROM audit_archived").fetchone()
    return Head(*row) if row else Head(0, "")


def hash_of(row_id: int) -> str | None:
    """The hash of the row with this id, or None."""
    row = database.execute_sql("SELECT hash FROM audit WHERE id = ?", (row_id,)).fetchone()
    return str(row[0]) if row else None


def verify() -> Verified:
    """Verify the whole chain in the database, in bounded memory."""
    while True:
        before = archived()
        found = follow(database_rows(), before)
        if found.broken_at is None or archived() == before:
            return found  # else rows were archived meanwhile


def follow(untrusted_rows: Iterator[tuple[Any, ...]], before: Head) -> Verified:
    """Verify rows, each with its hash as the last value, that come behind `before`."""
    rows = chained = 0
    head = before
    try:
        for row in untrusted_rows:
            old = not chained and head.hash == row[-1] == ""
            if row[0] != head.id + 1 or not (old or row[-1] == _link(head.hash, row[:-1])):
                return Verified(rows, chained, head, head.id + 1)
            rows, chained, head = rows + 1, chained + (not old), Head(row[0], row[-1])
    except sqlite3.DatabaseError as error:
        if not any(text in str(error) for text in _FORGED_ROW):
            raise
        return Verified(rows, chained, head, head.id + 1)
    return Verified(rows, chained, head, None)


def database_rows(first: int = LOWEST_ID, last: int = -LOWEST_ID - 1) -> Iterator[tuple[Any, ...]]:
    """The rows with these ids in order, in batches; forged values longer than ROW_MAX raise.

    In batches, since a long read transaction would keep the WAL from being truncated.
    """
    connection = database.connection()
    number, step, more = first, WALK_ROWS, True
    query = f"SELECT {COLUMNS}, hash FROM audit WHERE id BETWEEN ? AND ? ORDER BY id LIMIT ?"
    while more:
        more = False
        batch: list[tuple[Any, ...]] = []
        usual = connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, ROW_MAX)
        try:
            for row in connection.execute(query, (number, last, step)):
                batch.append(row)
        except sqlite3.DatabaseError:
            if step == 1:
                raise
            step, more = 1, True  # sqlite3 reads one row ahead: row by row the error belongs to the next one
        finally:
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, usual)
        yield from batch
        if batch:
            number, more = batch[-1][0] + 1, True


def _link(before: str, untrusted_values: tuple[Any, ...]) -> str | None:
    """As `link`, for an untrusted row; None when its values cannot be those of a genuine row."""
    try:
        return link(before, untrusted_values)
    except (TypeError, ValueError):
        return None
