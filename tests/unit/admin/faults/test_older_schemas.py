"""Fault test 11: a snapshot of each schema that was ever released is restored and migrated."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest
from depths import sample
from unit.admin.conftest import Svc
from unit.admin.rows import AT, ask

from svc.db import migrate


@pytest.fixture(params=sample(range(1, migrate.latest() + 1), 5, "each older schema"))
def older(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[int, str]:
    """A schema and a database as the release with that schema left it, with one account and its token."""
    number = int(request.param)
    folder, path = tmp_path / "migrations", tmp_path / "older.db"
    folder.mkdir()
    for name in sorted(Path(migrate.folder()).glob("*.sql"))[:number]:
        shutil.copy(name, folder)
    connection = sqlite3.connect(path, isolation_level=None)
    migrate.apply(connection, str(folder))
    connection.execute(
        "INSERT INTO users (id, name, uid, provisioning, created_at, updated_at)"
        f" VALUES (7, 'before', 5007, 'ready', '{AT}', '{AT}')"
    )
    connection.execute(
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        f" VALUES ('tok-7', 7, 'old', 'x', 'hash', '{AT}', '2027-11-01')"
    ) if number > 1 else None
    connection.close()
    path.chmod(0o600)
    return number, str(path)


def test_it_is_restored_and_migrated(
    svc: Svc, database: str, recovery: Path, folder: Path, older: tuple[int, str]
) -> None:
    number, path = older
    code, _, err = svc("backup", "--out", f"{folder}/older.db", "--db", path)
    assert code == 0, err
    code, out, err = svc("restore", f"{folder}/older.db", "--yes")
    assert code == 0, err
    pending = migrate.latest() - number
    assert (f"{pending} migration" in out) is (pending > 0), out
    assert ask(database, "SELECT name FROM users WHERE id = 7") == [("before",)]
    assert ask(database, "SELECT max(number) FROM schema_migrations") == [(migrate.latest(),)]
    assert ask(database, "PRAGMA integrity_check") == [("ok",)]
    assert ask(database, "PRAGMA foreign_key_check") == []
    assert svc("list-users")[1].splitlines()
