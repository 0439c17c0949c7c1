"""The database of a command, opened as its owner."""

from __future__ import annotations

from svc.admin.database import as_owner
from svc.db.connect import database as db
from svc.settings import Settings


def test_the_owner_opens_the_database(database: str) -> None:
    count = "SELECT count(*) FROM users"
    assert as_owner(Settings(), lambda: list(db.execute_sql(count).fetchone())) == [1]
