"""The checks of recovery sets, with sets as the commands make them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from svc.admin.checks import recovery
from svc.admin.findings import Host
from svc.host import notes, switching
from svc.host.owner import owner_of
from svc.settings import Settings


@pytest.fixture
def host(database: str) -> Host:
    return Host(Settings(), database, owner_of(database))


def test_recovery_sets(svc: Any, host: Host, tmp_path: Path) -> None:
    directory = tmp_path / "recovery"
    for _ in range(2):
        (none,) = recovery.recovery_sets(host)
        assert (none.code, none.level) == ("recovery_sets", "ok")
        directory.mkdir(mode=0o700, exist_ok=True)
    assert svc("rollback", "keep", "--why", "x")[0] == 0
    (kept,) = directory.iterdir()
    (made,) = recovery.recovery_sets(host)
    assert (made.level, made.found.startswith(f"1 set in {directory} take ")) == ("ok", True)
    assert made.found.endswith(f"the newest is {kept.name}")
    os.truncate(kept / "svc.db", 10)
    (damaged,) = recovery.recovery_sets(host)
    assert (damaged.code, damaged.level) == ("recovery_sets", "warn")
    assert "svc.db has 10 bytes and not" in damaged.found
    assert damaged.remedy.startswith("sudo svc admin rollback keep --why ")
    assert damaged.remedy.endswith(f" --db {host.database}")
    directory.chmod(0o777)
    (open_,) = recovery.recovery_sets(host)
    assert (open_.level, "SVC_RECOVERY_DIR" in open_.remedy) == ("warn", True)


def test_a_switch_cut_off(host: Host) -> None:
    assert not list(recovery.switch_under_way(host))
    path = switching.path_of(host.settings.state_dir)
    notes.put(path, {"database": host.database, "version": "2", "step": "package", "at": "2026-11-22"})
    (finding,) = recovery.switch_under_way(host)
    assert (finding.code, finding.level) == ("switch_under_way", "fail")
    assert finding.found == "a switch of svc to version 2 was interrupted at 2026-11-22 (step package)"
    assert finding.remedy == f"sudo svc admin rollback apply --finish --db {host.database}"
