"""The app's accounts share files by their group; a file of anybody else's group is private or refused."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from svc.host import sharing
from svc.host.owner import Owner


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Owner:
    """This process as the account of the service."""
    own = Owner(os.geteuid(), os.getegid())
    monkeypatch.setattr(sharing, "service_owner", lambda: own)
    return own


def mode(path: Path) -> int:
    """The mode of a file, not through a link."""
    return stat.S_IMODE(path.lstat().st_mode)


def test_an_installation_for_one_account_becomes_one_for_all(tmp_path: Path, service: Owner) -> None:
    data = tmp_path / "data"
    (data / "tls").mkdir(parents=True, mode=0o700)
    data.chmod(0o700)
    files = {
        "svc.db": 0o660, "svc.db-wal": 0o660, "secret.key": 0o640, "tls/cert.pem": 0o640, "tls/key.pem": 0o640
    }  # fmt: skip
    for name in files:
        (data / name).touch(0o600)
    for _ in range(2):
        sharing.share(str(data / "svc.db"), str(data / "secret.key"), "")
        assert {name: mode(data / name) for name in files} == files
        assert (mode(data), mode(data / "tls")) == (0o2770, 0o750)


def test_no_link_is_followed(tmp_path: Path, service: Owner) -> None:
    other = tmp_path / "other"
    other.touch(0o600)
    data = tmp_path / "data"
    data.mkdir()
    for name in ("svc.db", "secret.key"):
        (data / name).symlink_to(other)
    (data / "tls").symlink_to(tmp_path)
    before = mode(tmp_path)
    sharing.share(str(data / "svc.db"), str(data / "secret.key"))
    assert (mode(other), mode(tmp_path)) == (0o600, before)


def test_a_database_of_an_ordinary_user_stays_private(tmp_path: Path) -> None:
    (tmp_path / "svc.db").touch(0o600)
    sharing.share(str(tmp_path / "svc.db"))
    assert mode(tmp_path / "svc.db") == 0o600


@pytest.mark.parametrize(
    ("bits", "private"), [(0o600, True), (0o640, True), (0o660, False), (0o644, False), (0o641, False)]
)
def test_the_secret_may_be_read_by_the_group_alone(
    tmp_path: Path, service: Owner, bits: int, private: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "secret.key"
    path.touch()
    path.chmod(bits)
    assert sharing.is_private(path.stat()) is private
    monkeypatch.setattr(sharing, "service_owner", lambda: Owner(service.uid, service.gid + 1))
    assert sharing.is_private(path.stat()) is (bits == 0o600)
    assert not sharing.is_shared(path.stat())
