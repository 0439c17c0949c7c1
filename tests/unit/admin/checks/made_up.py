"""Made-up hosts below a directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.admin.findings import Enrolled, Finding, Host
from svc.host.owner import Owner
from svc.settings import Settings

ADA, BEN = Enrolled("ada", 4001), Enrolled("ben", 4002)


@pytest.fixture
def host(tmp_path: Path) -> Host:
    root = tmp_path / "root"
    for name in ("etc", "sys/fs/cgroup", "dev/net", "run"):
        (root / name).mkdir(parents=True)
    return Host(
        Settings(file={}), str(tmp_path / "svc.db"), Owner(0, 0), str(root), str(root), enrolled=[ADA]
    )


def put(host: Host, path: str, text: str) -> None:
    target = Path(host.at(path))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def levels(check: Callable[[Host], Iterator[Finding]], host: Host) -> list[tuple[str, str]]:
    found = list(check(host))
    assert all(bool(finding.remedy) == (finding.level != "ok") for finding in found)
    return [(finding.code, finding.level) for finding in found]
