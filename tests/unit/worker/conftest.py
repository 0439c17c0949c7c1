"""A migrated database in a temporary directory, with one ready account and one workspace row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.db import connect, migrate
from svc.domain.accounts import users
from svc.host.ids import now


@pytest.fixture
def db(tmp_path: Path) -> Iterator[str]:
    path = str(tmp_path / "svc.db")
    connect.open_database(path, create=True)
    migrate.apply(connect.database.connection())
    yield path
    connect.close_database()


@pytest.fixture
def owner(db: str) -> int:
    return users.create("ada", uid=2001, provisioning=users.READY).id


@pytest.fixture
def workspace(owner: int):
    """Make a workspace row: ``workspace("running", since="2026-01-01T00:00:00.000Z")``."""

    def make(
        status: str,
        since: str | None = None,
        name: str = "lab",
        started_at: str | None = None,
        work: int | None = None,
    ) -> str:
        workspace_id = f"ws-{name:0>8}"
        with connect.write():
            connect.database.execute_sql(
                "INSERT INTO workspaces (id, owner_id, name, template_id, template_revision, image_ref,"
                " status, status_since, created_at, updated_at, started_at, work)"
                " VALUES (?, ?, ?, 'tpl-1', 1, 'r.example/a:1', ?, ?, ?, ?, ?, ?)",
                (workspace_id, owner, name, status, since or now(), now(), now(), started_at, work),
            )
        return workspace_id

    return make
