"""A database and directories as a backup meets them."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_service import Service
from unit.admin.conftest import Svc
from unit.admin.packages import Place
from unit.admin.rows import AT, change, token, user, workspace

from svc.admin.backup import package
from svc.admin.backup.target import Target, opened
from svc.admin.release import service_unit
from svc.db import migrate


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory of the caller's alone."""
    path = tmp_path / "backups"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def target(folder: Path) -> Iterator[Target]:
    """The same, opened."""
    with opened(str(folder), instead="") as target:
        yield target


@pytest.fixture
def plain(tmp_path: Path) -> str:
    """A database in WAL mode with 2,000 rows, of no program."""
    path = str(tmp_path / "plain.db")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    with connection:
        connection.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT)")
        connection.execute("CREATE INDEX notes_text ON notes (text)")
        connection.executemany(
            "INSERT INTO notes (text) VALUES (?)", ((f"note {n}" * 9,) for n in range(2000))
        )
    connection.close()
    os.chmod(path, 0o600)
    return path


@pytest.fixture
def recovery(tmp_path: Path) -> Path:
    """The directory of recovery sets."""
    path = tmp_path / "recovery"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def snapshot(svc: Svc, database: str, folder: Path, recovery: Path) -> str:
    """A snapshot of a database with accounts, tokens, workspaces and work under way."""
    change(
        database,
        *(user(number, name) for number, name in ((20, "ada"), (21, "bob"), (22, "eve"), (23, "root2"))),
        "UPDATE users SET superuser = 1 WHERE id = 23",
        *(token(number) for number in (1, 2)),
        token(3, 21),
        workspace(1, "running"),
        workspace(2, "stopped"),
        workspace(3, "stopped", "NULL"),
        "INSERT INTO gpu_leases VALUES ('GPU-1', 'ws-1', 'exclusive', 'now')",
        f"INSERT INTO sessions VALUES ('ses-1', 1, 'c', 'h', 'a', '{AT}', '{AT}', '')",
        "INSERT INTO operations"
        " (id, owner_id, kind, subject_type, subject_id, status, created_at, updated_at)"
        f" VALUES ('op-1', 1, 'pull', 'image', 'x', 'queued', '{AT}', '{AT}')",
    )
    assert svc("backup", "--out", f"{folder}/x.db")[0] == 0
    return f"{folder}/x.db"


@pytest.fixture
def place(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    recovery: Path,
    serve: Callable[[Path], Service],
) -> Place:
    """Version 1 is installed and runs, on a migrated database."""
    root = tmp_path / "host"
    root.mkdir()
    place = Place(root)
    place.dpkg("-i", str(place.debs["1"]))
    monkeypatch.setattr(package, "ROOT", str(root))
    monkeypatch.setattr(package, "__file__", f"{root}/usr/lib/svc/python/svc/package.py")
    monkeypatch.setattr(migrate, "folder", lambda: f"{root}/usr/lib/svc/python/migrations")
    monkeypatch.setattr(service_unit, "SYSTEMD", str(root))
    monkeypatch.setattr(service_unit, "STOPPED_BY_UPGRADE", f"{root}/was-active")
    monkeypatch.setattr(package, "LOCK_S", 0.1)
    monkeypatch.setattr(service_unit, "SYSTEMCTL", str(place.systemctl))
    monkeypatch.setattr(service_unit, "HEALTHY_WITHIN_S", 0.05)  # the first answer counts, however late
    monkeypatch.setattr(service_unit, "EVERY_S", 0.02)
    (tmp_path / "run").mkdir(exist_ok=True)
    serve(tmp_path / "run" / "svc.sock").raw("GET /api/health", place.health)
    (root / "calls").write_text("")
    return place


@pytest.fixture
def serve() -> Iterator[Callable[[Path], Service]]:
    services = []

    def begin(path: Path) -> Service:
        services.append(Service(path))
        return services[-1]

    yield begin
    for service in services:
        service.close()
