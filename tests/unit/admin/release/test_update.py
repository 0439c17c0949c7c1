"""`svc admin update status|check`, of a program from a checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.admin.conftest import Svc
from unit.releasing import COMMIT, ReleaseVendor, Server, make_package

from svc.admin.backup import package
from svc.admin.release import record

pytestmark = pytest.mark.allow_commands("dpkg", "dpkg-deb")


@pytest.fixture
def release(vendor: ReleaseVendor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, needs_root: None) -> Path:
    """A release in the directory that SVC_UPDATE_SOURCE names."""
    monkeypatch.setenv("SVC_UPDATE_SOURCE", f"{tmp_path}/release")
    (tmp_path / "notes").write_text("First line.\nSecond line.\n")
    return vendor.release(tmp_path, notes=tmp_path / "notes")


def status(svc: Svc) -> dict[str, Any]:
    code, out, err = svc("update", "status", "--json")
    assert (code, err) == (0, "")
    return dict(json.loads(out))


def test_check_says_what_is_offered_and_status_remembers_it(svc: Svc, built: None, release: Path) -> None:
    """ "Shows, refreshes, or applies the latest release." """
    assert status(svc)["available"] == ""
    code, out, err = svc("update", "check")
    assert (code, out.splitlines()[1:]) == (0, ["  First line.", "  Second line."])
    assert out.startswith("svc 1.2.0 of 20")
    assert "in a checkout of the new release: sudo packaging/install" in err
    found = status(svc)
    assert (found["available"], found["seen"]["commit"], found["checked"]["problem"]) == ("1.2.0", COMMIT, "")
    assert (found["installed"]["by"], found["installed"]["commit"]) == ("checkout", "a" * 40)
    code, out, _ = svc("update", "status")
    assert (code, "available\t1.2.0\n" in out, "  Second line.\n" in out) == (0, True, True)


def test_up_to_date_is_no_error(svc: Svc, built: None, release: Path, vendor: ReleaseVendor) -> None:
    vendor.resign(release, commit="a" * 40)
    code, out, _ = svc("update", "check")
    assert (code, out) == (0, "svc commit aaaaaaaaaaaa is up to date\n")
    assert status(svc)["available"] == ""


def test_an_old_release_that_is_offered_again_is_refused(
    svc: Svc, built: None, release: Path, vendor: ReleaseVendor
) -> None:
    vendor.resign(release, version="1.3.0")
    assert svc("update", "check")[0] == 0
    vendor.resign(release, version="1.2.9")
    code, _, err = svc("update", "check")
    assert (code, "an old release is offered again" in err) == (1, True)
    assert "hint: sudo svc admin update status\n" in err
    found = status(svc)
    assert (found["available"], "offered again" in found["checked"]["problem"]) == ("1.3.0", True)


def test_a_host_is_offered_what_was_built_for_it(
    svc: Svc,
    built: None,
    release: Path,
    vendor: ReleaseVendor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A release with packages of Debian 12 and 13, and one of Debian 12 alone."""
    twelve, thirteen = (
        make_package(tmp_path, f"1.3.0+deb{number}", Svc_System=f"debian-{number}", Svc_Release="1.3.0")
        for number in (12, 13)
    )
    monkeypatch.setattr(package, "OS_RELEASE", str(tmp_path / "os-release"))
    (tmp_path / "os-release").write_text(
        'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nVERSION_ID="13"\nID=debian\n'
    )
    vendor.sign(release, twelve)
    code, out, err = svc("update", "check")
    assert (code, out) == (1, "")
    assert "1.3.0 has no package for this host (debian-13 amd64), only for debian-12 amd64" in err
    vendor.sign(release, twelve, thirteen)
    code, out, err = svc("update", "check")
    assert (code, out.startswith("svc 1.3.0 of 20")) == (0, True), err


def test_a_build_without_a_key_asks_nobody(
    svc: Svc, release: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", server.url)
    code, _, err = svc("update", "check")
    assert (code, "this build has no release key" in err, server.requests) == (1, True, [])
    assert status(svc)["keys"] == []


def test_a_server_is_asked_too(
    svc: Svc, built: None, release: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", f"{server.url}/")
    code, out, _ = svc("update", "check", "--json")
    assert (code, json.loads(out)["available"]) == (0, "1.2.0")
    server.status = 503
    code, _, err = svc("update", "check")
    assert (code, "the server answered 503" in err) == (1, True)
    assert "answered 503" in status(svc)["checked"]["problem"]


@pytest.mark.parametrize(
    "source", ["http://localhost/x", "ftp://localhost/x", "releases", "https://", "https://a b/", "file:///x"]
)
def test_other_sources_are_refused(svc: Svc, monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", source)
    code, _, err = svc("update", "check")
    assert (code, "SVC_UPDATE_SOURCE from environment must be" in err) == (1, True)


def test_a_password_in_the_source_is_refused(svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SVC_UPDATE_SOURCE", "https://ada:secret@localhost/x")
    code, _, err = svc("update", "check")
    assert (code, "must not have a user or password" in err, "secret" in err) == (1, True, False)


def test_without_a_source(svc: Svc, built: None, needs_root: None) -> None:
    code, _, err = svc("update", "check")
    assert (code, "no source of releases is set" in err, "SVC_UPDATE_SOURCE" in err) == (1, True, True)
    assert svc("update", "status")[0] == 0


def test_a_record_that_others_wrote_stops_a_check(
    svc: Svc, built: None, release: Path, tmp_path: Path
) -> None:
    (tmp_path / "state").mkdir(exist_ok=True)
    Path(record.path_of(str(tmp_path / "state"))).write_text("{}")
    code, _, err = svc("update", "check")
    assert (code, "is not what svc wrote" in err) == (1, True)
