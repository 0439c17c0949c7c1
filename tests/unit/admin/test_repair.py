"""Repairing owners and modes through descriptors: what is changed, and what never is."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from svc.admin import own_files
from svc.admin.findings import Finding
from svc.admin.own_files import ROOT, OwnFile
from svc.admin.repair import UnsafeError, repair, resolved
from svc.host.owner import Owner

NOBODY = Owner(65534, 65534)


@pytest.fixture
def top(tmp_path: Path, needs_root: None) -> Path:
    """A data directory of nobody's with a secret, below directories of root's."""
    path = tmp_path / "data"
    path.mkdir(mode=0o700)
    (path / "secret.key").write_text("x" * 65)
    (path / "secret.key").chmod(0o600)
    for each in (path, path / "secret.key"):
        os.chown(each, *NOBODY)
    return path


def files(top: Path) -> list[OwnFile]:
    return [
        OwnFile(str(top), (), "directory", NOBODY, 0o700),
        OwnFile(str(top), ("secret.key",), "regular file", NOBODY, 0o600, 32),
        OwnFile(str(top), ("tls",), "directory", NOBODY, 0o700),
        OwnFile(str(top), ("tls", "key.pem"), "regular file", NOBODY, 0o600),
    ]


def held(path: Path) -> tuple[int, int, int]:
    status = path.lstat()
    return status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)


def repaired(top: Path) -> list[Finding]:
    found = list(repair(files(top)))
    assert all(bool(finding.remedy) == (finding.level != "ok") for finding in found)
    return found


def test_what_is_sound_is_left(top: Path) -> None:
    assert repaired(top) == []


def test_owners_and_modes_are_set_once(top: Path) -> None:
    (top / "tls").mkdir(mode=0o755)
    (top / "tls" / "key.pem").write_text("key")
    (top / "secret.key").chmod(0o644)
    os.chown(top, 0, 0)
    assert [finding.level for finding in repaired(top)] == ["ok"] * 4
    assert held(top) == held(top / "tls") == (*NOBODY, 0o700)
    assert held(top / "secret.key") == held(top / "tls" / "key.pem") == (*NOBODY, 0o600)
    assert repaired(top) == []


def test_the_logs_stay_their_creators(top: Path) -> None:
    """SQLite makes them anew for whichever process writes first."""
    log = OwnFile(str(top), ("svc.db-wal",), "regular file", NOBODY, 0o660, creators=frozenset({65533}))
    (top / "svc.db-wal").touch(0o660)
    (top / "svc.db-wal").chmod(0o660)
    os.chown(top / "svc.db-wal", 65533, NOBODY.gid)
    assert list(repair([log])) == []
    os.chown(top / "svc.db-wal", 65532, NOBODY.gid)
    assert [finding.level for finding in repair([log])] == ["ok"]
    assert held(top / "svc.db-wal")[0] == NOBODY.uid


def test_a_link_is_moved_aside_and_not_followed(top: Path, tmp_path: Path) -> None:
    roots = tmp_path / "roots"
    roots.mkdir(mode=0o700)
    (roots / "key.pem").write_text("root's")
    (roots / "key.pem").chmod(0o644)
    (top / "secret.key").unlink()
    (top / "secret.key").symlink_to(roots / "key.pem")
    (top / "tls").symlink_to(roots)
    for _ in range(2):
        found = repaired(top)
    assert found == []
    assert held(roots) == (0, 0, 0o700)
    assert held(roots / "key.pem") == (0, 0, 0o644)
    assert sorted(os.listdir(top)) == ["secret.key.aside-1", "tls.aside-1"]


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: Path(path).touch()])
def test_what_is_no_secret_is_moved_aside(top: Path, make: object) -> None:
    for number in (1, 2):
        if number == 1:
            (top / "secret.key").unlink()
        make(top / "secret.key")  # type: ignore[operator]
        (found,) = repaired(top)
        assert f"secret.key.aside-{number}" in found.found


def test_a_file_with_another_name_is_left(top: Path, tmp_path: Path) -> None:
    """Its other name may be anybody's file: where hard links are not protected, /etc/shadow."""
    (tmp_path / "shadow").write_text("x" * 100)
    (tmp_path / "shadow").chmod(0o640)
    (top / "secret.key").unlink()
    os.link(tmp_path / "shadow", top / "secret.key")
    (found,) = repaired(top)
    assert (found.level, "2 names" in found.found) == ("fail", True)
    assert held(tmp_path / "shadow") == (0, 0, 0o640)


def test_a_directory_that_holds_other_files_is_not_the_services(top: Path, tmp_path: Path) -> None:
    """SVC_DB=/var/lib/svc.db: /var/lib must not become svc's."""
    os.chown(top, 0, 0)
    (top / "dpkg").mkdir()
    (found,) = repaired(top)
    assert (found.level, "dpkg" in found.found) == ("fail", True)
    assert held(top) == (0, 0, 0o700)
    tmp = OwnFile(str(tmp_path), (), "directory", ROOT, 0o755)
    tmp_path.chmod(0o1777)
    assert [finding.level for finding in repair([tmp])] == ["fail"]


def test_roots_own_directory_is_closed_whatever_is_in_it(tmp_path: Path, needs_root: None) -> None:
    state = tmp_path / "state"
    (state / "rubbish").mkdir(parents=True)
    state.chmod(0o777)
    (found,) = repair([OwnFile(str(state), (), "directory", ROOT, 0o755)])
    assert (found.level, held(state)) == ("ok", (0, 0, 0o755))


def test_nothing_is_changed_below_anothers_directory(top: Path, tmp_path: Path) -> None:
    os.chown(tmp_path, 65533, 65533)
    (top / "secret.key").chmod(0o644)
    try:
        found = repaired(top)
    finally:
        os.chown(tmp_path, 0, 0)
    assert {finding.level for finding in found} == {"fail"}
    assert held(top / "secret.key")[2] == 0o644


def test_roots_links_lead_to_the_top(top: Path, tmp_path: Path) -> None:
    """An administrator may keep the data on another disk."""
    (tmp_path / "link").symlink_to("data")
    (top / "secret.key").chmod(0o644)
    assert [finding.level for finding in repaired(tmp_path / "link")] == ["ok"]
    assert held(top / "secret.key")[2] == 0o600
    assert (tmp_path / "link").is_symlink()
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(UnsafeError, match="too many links"):
        resolved(str(tmp_path / "loop" / "x"))


def test_the_settings_file_is_repaired_through_roots_link(tmp_path: Path, needs_root: None) -> None:
    etc = tmp_path / "svc"
    etc.mkdir(mode=0o755)
    (tmp_path / "kept.env").write_text("")
    (tmp_path / "kept.env").chmod(0o666)
    (etc / "svc.env").symlink_to(tmp_path / "kept.env")
    list(repair(list(own_files.settings_file(str(etc / "svc.env")))))
    assert held(tmp_path / "kept.env") == (0, 0, 0o644)
    assert (etc / "svc.env").is_symlink()
