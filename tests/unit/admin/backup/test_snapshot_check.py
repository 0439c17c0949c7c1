from __future__ import annotations

import hashlib
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from svc.admin.backup import snapshot_check
from svc.db import migrate
from svc.errors import SvcError


def check(path: str | Path) -> snapshot_check.Check:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return snapshot_check.checked(snapshot_check.check(descriptor, migrate.known(), os.getpid()))
    finally:
        os.close(descriptor)


@pytest.fixture
def snapshot(folder: Path) -> Path:
    path = folder / "svc.db"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.apply(connection)
    connection.close()
    return path


def change(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


def test_a_sound_snapshot(snapshot: Path) -> None:
    found = check(snapshot)
    assert found.problem == ""
    assert (found.schema, found.pending) == (migrate.latest(), 0)
    assert found.sha256 == hashlib.sha256(snapshot.read_bytes()).hexdigest()
    assert found.rows["schema_migrations"] == migrate.latest()
    assert found.rows["users"] == 0


def test_an_older_one_can_be_restored(snapshot: Path) -> None:
    number = migrate.latest()
    change(
        snapshot,
        f"DELETE FROM schema_migrations WHERE number = {number}",
        f"PRAGMA user_version = {number - 1}",
    )
    found = check(snapshot)
    assert (found.problem, found.schema, found.pending) == ("", number - 1, 1)


NEWER = "INSERT INTO schema_migrations VALUES (999, 'later', 'x', 'now')"


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        ((NEWER, "PRAGMA user_version = 999"), "of a newer release"),
        (("PRAGMA application_id = 7",), "another program"),
        (("UPDATE schema_migrations SET sha256 = 'x' WHERE number = 2",), "was edited"),
        (
            ("PRAGMA foreign_keys = OFF", "INSERT INTO operation_log VALUES ('op', 1, 'now', 'x')"),
            "missing row of operations",
        ),
    ],
)
def test_why_it_cannot_be_restored(snapshot: Path, statements: tuple[str, ...], why: str) -> None:
    change(snapshot, *statements)
    assert why in check(snapshot).problem


def test_damage_is_found(plain: str) -> None:
    """An index that does not fit its table: SQLite's quick check would not see it."""
    sql = "CREATE INDEX notes_text ON notes (text, id)"
    change(
        Path(plain),
        "PRAGMA writable_schema = ON",
        "PRAGMA journal_mode = DELETE",
        f"UPDATE sqlite_schema SET sql = '{sql}' WHERE name = 'notes_text'",
    )
    assert check(plain).fault


@pytest.mark.parametrize("size", [0, 50, 4096, 9000])
def test_a_file_that_was_cut_off(snapshot: Path, size: int) -> None:
    os.truncate(snapshot, size)
    assert check(snapshot).problem


def test_a_log_beside_it_is_not_read(snapshot: Path) -> None:
    Path(f"{snapshot}-wal").write_bytes(os.urandom(9000))
    Path(f"{snapshot}-journal").write_bytes(os.urandom(9000))
    assert check(snapshot).problem == ""


def test_a_forged_schema_runs_nothing(snapshot: Path) -> None:
    change(
        snapshot,
        'CREATE TABLE "x\'; DROP TABLE users" (a)',
        "CREATE VIEW evil AS SELECT load_extension('/tmp/x')",
        "CREATE VIRTUAL TABLE search USING fts5 (a)",
        "CREATE TABLE sized (a)",
    )
    found = check(snapshot)
    assert found.problem == ""
    assert "sized" in found.rows
    assert not {"evil", "search", "x'; DROP TABLE users"} & set(found.rows)


GOOD = {
    "sha256": "0" * 64, "fault": "", "foreign": "", "schema": 1, "pending": 0, "refused": "",
    "rows": {"users": 1}, "sqlite_version": "3",
}  # fmt: skip


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "x"}, {"schema": True}, {"schema": -1}, {"schema": 2**63}, {"fault": None}, {"rows": []},
        {"rows": {"users": "1"}}, {"rows": {"../x": 1}}, {"rows": {f"t{n}": 1 for n in range(201)}},
        {"refused": "x" * 301}, {"more": 1},
    ],
)  # fmt: skip
def test_the_owners_word_is_checked(change: dict[str, Any]) -> None:
    assert snapshot_check.checked(GOOD).schema == 1
    with pytest.raises(SvcError, match="no usable result"):
        snapshot_check.checked(GOOD | change)
    with pytest.raises(SvcError, match="no usable result"):
        snapshot_check.checked(list(change))
