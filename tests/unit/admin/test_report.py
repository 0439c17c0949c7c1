"""What administrators read of root's directories: written by the commands that know it."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.admin.checks import order
from svc.admin.findings import Finding, Host, fail, ok
from svc.domain import host_reports
from svc.domain.host_reports import BACKUPS, HOST, KINDS, RECOVERY_SETS, UPDATES

pytestmark = pytest.mark.allow_commands("dpkg", "dpkg-query")


def sound(_host: Host) -> Iterator[Finding]:
    yield ok("sound", "all is well")


def broken(_host: Host) -> Iterator[Finding]:
    yield fail("broken", "it does not work", "sudo mend that")


@pytest.fixture
def state(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a service whose database is set in its environment."""
    monkeypatch.setenv("SVC_DB", database)
    monkeypatch.setenv("SVC_BACKUP_DIR", str(tmp_path / "backups"))
    for name in ("backups", "recovery"):
        (tmp_path / name).mkdir(mode=0o700)
    path = tmp_path / "state"
    path.mkdir(exist_ok=True)
    configured(state_dir=str(path))
    monkeypatch.setattr(order, "CHECKS", (sound, broken))
    return path


@pytest.fixture
def own(svc: Any, state: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run `svc admin` without --db."""
    import svc.__main__ as program

    def run(*arguments: str, capfd: Any = None) -> int:
        monkeypatch.setattr("sys.argv", ["svc", "admin", *arguments])
        return int(program.main(["admin", *arguments]))

    return run


def test_all_are_renewed(own: Any, state: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert own("report") == 0
    assert capfd.readouterr() == ("", "")
    assert sorted(path.name for path in (state / "reports").iterdir()) == sorted(
        f"{kind.name}.json" for kind in KINDS
    )
    assert all(host_reports.read(kind).written_at for kind in KINDS)
    assert [item["code"] for item in host_reports.read(HOST).items] == ["sound", "broken"]
    [item] = host_reports.read(UPDATES).items
    assert (item["installed_by"], item["checked_at"]) == ("checkout", None)
    assert host_reports.read(BACKUPS).items == host_reports.read(RECOVERY_SETS).items == []


def test_nobody_else_reads_them(own: Any, state: Path) -> None:
    own("report")
    modes = [
        stat.S_IMODE(os.stat(path).st_mode) for path in (state / "reports", *(state / "reports").iterdir())
    ]
    assert modes == [0o2750] + [0o640] * len(KINDS)


def test_the_doctor_writes_its_own(own: Any, state: Path) -> None:
    assert own("doctor") == 1
    assert [item["level"] for item in host_reports.read(HOST).items] == ["ok", "fail"]
    assert host_reports.read(BACKUPS).written_at is None


def test_a_backup_writes_its_own(own: Any, state: Path) -> None:
    for _ in range(2):
        assert own("backup", "--retention", "5") == 0
    newest, older = host_reports.read(BACKUPS).items
    assert newest["name"] > older["name"]
    assert newest["size_bytes"] > 0 and newest["host_files"] and newest["schema"]


def test_recovery_sets_write_their_own(own: Any, state: Path) -> None:
    assert own("rollback", "keep", "--why", "a test") == 0
    [item] = host_reports.read(RECOVERY_SETS).items
    assert (item["why"], item["kind"]) == ("a test", "upgrade")
    (state / "reports" / "recovery_sets.json").unlink()
    assert own("rollback", "list") == 0
    assert host_reports.read(RECOVERY_SETS).items == [item]


def test_a_database_that_was_named_is_not_reported(svc: Any, state: Path, database: str) -> None:
    svc("doctor", "--db", database)
    assert not (state / "reports").exists()


def test_what_cannot_be_written_fails_the_report_alone(
    own: Any, state: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (state / "reports").write_text("no folder")
    assert own("doctor") == 1  # its finding
    assert own("report") == 1
    assert "not written to" in capfd.readouterr().err
