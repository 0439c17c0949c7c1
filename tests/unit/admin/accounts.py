"""Rows that the tests of `svc admin` want."""

from __future__ import annotations

from svc.db.connect import database, write


def add_token(user_id: int, name: str) -> None:
    """An active token of the user, called that."""
    with write():
        database.execute_sql(
            "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
            " VALUES (?1, ?2, ?1, '', ?1, '2026-01-01T00:00:00.000Z', '2099-01-01T00:00:00.000Z')",
            (name, user_id),
        )
