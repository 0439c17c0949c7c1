"""The check of the backups' age, with snapshots as `svc admin backup` writes them."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import Any

import pytest

from svc.admin.checks import backups
from svc.admin.findings import Host
from svc.host.owner import owner_of
from svc.settings import Settings


@pytest.fixture
def host(database: str, tmp_path: Path) -> Host:
    settings = Settings(environ={"SVC_DB": database, "SVC_BACKUP_DIR": f"{tmp_path}/backups"}, file={})
    return Host(settings, database, owner_of(database))


def test_the_newest_snapshot_counts(
    svc: Any, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "backups"
    (missing,) = backups.backups(host)
    assert (missing.level, missing.found) == ("warn", f"there is none: {directory} is missing")
    assert missing.remedy.startswith("sudo editor /etc/svc/svc.env ")
    directory.mkdir(mode=0o700)
    (none,) = backups.backups(host)
    assert (none.level, none.remedy) == (
        "warn",
        f"sudo svc admin backup --retention 14 --db {host.database}",
    )
    assert svc("backup", "--dir", str(directory), "--retention", "3")[0] == 0
    (made,) = backups.backups(host)
    assert (made.level, made.found) == ("ok", f"the newest of 1 in {directory} is less than an hour old")
    later = time.time() + 3 * 86400
    monkeypatch.setattr("time.time", lambda: later)
    (old,) = backups.backups(host)
    assert (old.level, old.found) == ("warn", f"the newest of 1 in {directory} is 3 days old")
    assert old.remedy == none.remedy
    (directory / next(name for name in os.listdir(directory) if name.endswith(".json"))).unlink()
    assert "there is none of" in next(backups.backups(host)).found


def test_the_remedy_removes_no_snapshot(
    svc: Any, host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever keeps more than the usual number of them still has them all after the prescribed command."""
    directory = tmp_path / "backups"
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(backups, "KEPT", 2)
    for _ in range(4):
        assert svc("backup", "--dir", str(directory), "--retention", "100")[0] == 0
    before = set(os.listdir(directory))
    later = time.time() + 3 * 86400
    with monkeypatch.context() as patch:
        patch.setattr("time.time", lambda: later)
        (old,) = backups.backups(host)
    monkeypatch.setenv("SVC_BACKUP_DIR", str(directory))
    assert old.remedy.startswith("sudo svc admin ")
    assert svc(*shlex.split(old.remedy)[3:])[0] == 0
    assert before < set(os.listdir(directory))


def test_a_directory_that_others_can_change(host: Host, tmp_path: Path) -> None:
    (tmp_path / "backups").mkdir()
    (tmp_path / "backups").chmod(0o777)
    (found,) = backups.backups(host)
    assert (found.code, found.level, "SVC_BACKUP_DIR" in found.remedy) == ("backups", "warn", True)
