"""The check: damage becomes the condition, a sound database ends it, time bounds it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from unit.db.disks import zero_page_of

from svc.db import check, condition
from svc.db.connect import close_database, database, open_database
from svc.errors import DatabaseDamaged, DatabaseRefused


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "_seen", {})


def test_damage_is_noted_and_cleared(migrated: str) -> None:
    open_database(migrated)
    assert check.update_condition(database.connection(), migrated, 10) is None
    close_database()
    whole = open(migrated, "rb").read()  # noqa: SIM115  no descriptor may stay
    zero_page_of(migrated, "audit_owner")
    open_database(migrated)
    found = check.update_condition(database.connection(), migrated, 10)
    assert isinstance(found, DatabaseDamaged)
    assert "***" not in found.message, "SQLite's title is left out"
    assert condition.find_damage(migrated) is not None
    close_database()
    with open(migrated, "wb") as file:
        file.write(whole)
    open_database(migrated)
    assert check.update_condition(database.connection(), migrated, 10) is None
    assert condition.find_damage(migrated) is None


def test_a_check_that_takes_too_long_says_nothing(migrated: str) -> None:
    connection = sqlite3.connect(migrated, isolation_level=None)
    connection.execute("CREATE TABLE much (x)")
    connection.execute(
        "INSERT INTO much WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)"
        " SELECT printf('%050d', i) FROM n"
    )
    for within_s in (0, 0.001):  # also when time is over before it has begun
        # On a busy host the check may be over before the thread that ends it has had a turn.
        assert any(check.first_fault(connection, within_s) is None for _ in range(50))
    assert check.first_fault(connection, 30) == ""
    connection.close()


def test_a_start_is_refused_only_for_what_cannot_be_used(migrated: str) -> None:
    check.require_usable(migrated)
    close_database()
    zero_page_of(migrated, "audit_owner")
    check.require_usable(migrated)
    close_database()
    assert condition.find_damage(migrated) is not None, "it is still read"
    with open(migrated, "r+b") as file:
        file.truncate(0)
    with pytest.raises(DatabaseRefused, match="is empty") as caught:
        check.require_usable(migrated)
    assert "svc admin migrate" in caught.value.hint
    with open(migrated, "wb") as file:
        file.write(b"no database" * 1000)
    with pytest.raises(DatabaseRefused, match="is not a database") as caught:
        check.require_usable(migrated)
    assert caught.value.hint.startswith("stop the service, then: sudo svc admin restore PATH")


def test_a_changed_bit_in_what_is_indexed(migrated: str) -> None:
    connection = sqlite3.connect(migrated, isolation_level=None)
    connection.execute("INSERT INTO users (name, created_at, updated_at) VALUES ('ada-of-the-index', '', '')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    connection.close()
    content = bytearray(Path(migrated).read_bytes())
    content[content.index(b"ada-of-the-index")] ^= 1
    Path(migrated).write_bytes(content)
    connection = sqlite3.connect(migrated, isolation_level=None)
    assert check.first_fault(connection, 10) == ""
    assert check.first_fault(connection, 10, indexes=True)
    connection.close()


@pytest.mark.parametrize(
    ("statement", "lacks"),
    [
        ("DROP TABLE sessions", "the schema lacks the column sessions."),
        ("DROP INDEX audit_owner", "the schema lacks the index audit_owner"),
        ("DROP TRIGGER audit_keeps_its_rows", "the schema lacks the trigger audit_keeps_its_rows"),
        ("ALTER TABLE audit_archived DROP COLUMN hash", "the schema lacks the column audit_archived.hash"),
        ("UPDATE schema_migrations SET sha256 = '0' WHERE number = 2", "was edited after it was applied"),
        ("DELETE FROM schema_migrations WHERE number = 2", "has a gap"),
    ],
)
def test_a_schema_that_is_not_that_of_its_number(migrated: str, statement: str, lacks: str) -> None:
    """Served as healthy, its requests failed one by one."""
    check.require_usable(migrated)
    assert condition.find(migrated) is None
    close_database()
    with sqlite3.connect(migrated) as connection:
        connection.execute(statement)
    connection.close()
    check.require_usable(migrated)
    found = condition.find_damage(migrated)
    assert found is not None
    assert lacks in found.reason


def test_what_somebody_has_added_is_no_fault(migrated: str) -> None:
    with sqlite3.connect(migrated) as connection:
        connection.execute("CREATE INDEX own ON users (name, uid)")
    connection.close()
    check.require_usable(migrated)
    assert condition.find(migrated) is None
