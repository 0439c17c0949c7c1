"""What the doctor says of the database's disk, and of damage that the service has found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from svc.admin.checks import database
from svc.admin.findings import Finding, Host
from svc.db import condition, faults, reserve
from svc.errors import SvcError
from svc.host.owner import Owner
from svc.settings import Settings


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host whose database belongs to whoever runs the tests."""
    monkeypatch.setattr(condition, "_seen", {})
    path = tmp_path / "svc.db"
    path.touch()
    return Host(Settings(environ={}, file={}), str(path), Owner(os.geteuid(), os.getegid()))


def only(host: Host) -> Finding:
    (found,) = database.database_disk(host)
    assert found.code == "database_disk"
    return found


def test_room_is_named(host: Host) -> None:
    reserve.make(host.database)
    assert only(host).level == "ok"
    assert "MiB are free" in only(host).found


def test_a_full_disk(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "room", lambda _path: 3 << 20)
    found = only(host)
    assert (found.level, found.remedy) == ("fail", f"df -h {Path(host.database).parent}")
    assert found.found.startswith("only 3 MiB are free")


@pytest.mark.parametrize(
    ("error", "remedy"),
    [
        (faults.damaged("page 30"), faults.RESTORE),
        (faults.failed("disk I/O error"), "sudo dmesg --level=err,warn"),
    ],
)
def test_what_the_service_found(host: Host, error: SvcError, remedy: str) -> None:
    condition.note(host.database, error)
    found = only(host)
    assert (found.level, found.remedy) == ("fail", remedy)
    assert error.message in found.found


def test_a_disk_that_fails_now(host: Host) -> None:
    os.mkdir(reserve.path_of(host.database))
    assert only(host).remedy == "sudo dmesg --level=err,warn"


@pytest.mark.parametrize(
    "untrusted", [None, [], {}, {"code": 1}, {"code": "", "reason": "", "at": "", "room": "x", "full": 0}]
)
def test_an_answer_of_another_shape_is_refused(
    host: Host, untrusted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "run_as", lambda *_: untrusted)
    with pytest.raises(SvcError, match="no usable result"):
        only(host)
