"""The check of updates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from svc.admin.backup import package
from svc.admin.checks.update import update
from svc.admin.findings import Host
from svc.admin.release import record
from svc.host.owner import Owner
from svc.settings import Settings

pytestmark = pytest.mark.allow_commands("dpkg", "dpkg-query")
AT = "2026-01-02T00:00:00.000Z"
CHECKED = {"at": AT, "source": "/srv/releases", "problem": ""}
SEEN = {
    "version": "1.3.0", "commit": "b" * 40, "schema": 9, "published_at": AT, "min_from": "1.0", "notes": "",
    "at": AT,
}  # fmt: skip
APPLIED = {
    "at": AT, "from": "1.2.0", "to": "1.3.0", "commit": "b" * 40, "outcome": "ok", "reason": "",
    "recovery_set": "",
}  # fmt: skip


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host where the package of 1.2.0 is installed."""
    (tmp_path / "var/lib/dpkg/info").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(
        "Package: svc\nStatus: install ok installed\nMaintainer: x <x@example.org>\n"
        "Architecture: amd64\nVersion: 1.2.0\nDescription: test\n\n"
    )
    monkeypatch.setattr(package, "ROOT", str(tmp_path))
    monkeypatch.setattr(package, "__file__", f"{tmp_path}/usr/lib/svc/python/svc/package.py")
    settings = Settings(environ={"SVC_STATE_DIR": str(tmp_path)}, file={})
    return Host(settings, "", Owner(0, 0))


def found(host: Host, **parts: dict[str, Any]) -> list[tuple[str, str, str]]:
    record.change(host.settings.state_dir, **parts)
    return [(one.code, one.level, one.found) for one in update(host)]


def test_nothing_is_said_where_nobody_looked(host: Host) -> None:
    assert list(update(host)) == []


def test_a_check_that_worked(host: Host) -> None:
    seen = SEEN | {"version": "1.2.0"}
    assert found(host, checked=CHECKED, seen=seen) == [("update", "ok", "the last check was on 2026-01-02")]


def test_a_newer_release_is_information(host: Host) -> None:
    assert found(host, checked=CHECKED, seen=SEEN)[1:] == [
        ("update_available", "ok", "1.3.0 was seen on 2026-01-02 (svc admin update status)")
    ]


def test_a_check_that_failed(host: Host) -> None:
    checked = CHECKED | {"problem": "the server is too slow"}
    assert found(host, checked=checked) == [
        ("update", "warn", "the last check, on 2026-01-02, failed: the server is too slow")
    ]


def test_a_good_update_that_was_undone_is_no_fault(host: Host) -> None:
    assert found(host, checked=CHECKED, applied=APPLIED) == [
        (
            "update",
            "ok",
            "the last check was on 2026-01-02; the update to 1.3.0 on 2026-01-02 was undone since: 1.2.0 is"
            " installed",
        )
    ]


@pytest.mark.parametrize(
    ("outcome", "text"),
    [
        ("rehearsal_failed", "failed in its rehearsal: no room"),
        ("went_back", "went back: no room"),
        ("failed", "was not completed: no room"),
        ("begun", "was not completed: no room"),
    ],
)
def test_an_apply_that_failed(host: Host, outcome: str, text: str) -> None:
    applied = APPLIED | {"outcome": outcome, "reason": "no room"}
    assert found(host, checked=CHECKED, applied=applied) == [
        ("update", "warn", f"the update to 1.3.0 on 2026-01-02 {text}")
    ]
    later = applied | {"to": "1.1.0"}  # by now a newer version is installed
    assert found(host, applied=later) == [("update", "ok", "the last check was on 2026-01-02")]
