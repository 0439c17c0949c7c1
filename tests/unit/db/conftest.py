"""Databases of the tests of svc.db."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.db import migrate
from svc.db.connect import close_database, database, open_database

NOBODY = 65534


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No test leaves its connection to the next one."""
    yield
    close_database()


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Where a test's database is, or would be."""
    return str(tmp_path / "svc.db")


@pytest.fixture
def migrated(path: str) -> str:
    """A database with the present schema, closed."""
    open_database(path, create=True)
    migrate.apply(database.connection())
    close_database()
    return path


@pytest.fixture
def place(needs_root: None) -> Iterator[Path]:
    """A directory that every user can reach, for tests that work as another one."""
    created = Path(tempfile.mkdtemp(prefix="svc-test-"))
    created.chmod(0o755)
    yield created
    shutil.rmtree(created)


@pytest.fixture
def nobodys(place: Path) -> Path:
    """A directory there that belongs to an unprivileged account."""
    created = place / "data"
    created.mkdir(mode=0o700)
    os.chown(created, NOBODY, NOBODY)
    return created
