"""A vendor of releases, a program built with its key, an https server."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from unit.admin.backup.conftest import place, recovery, serve, snapshot  # noqa: F401  (fixtures)
from unit.releasing import ReleaseVendor, Server, served

from svc.admin.release.signed import Package
from svc.host.owner import Owner
from svc.tls import certificates

CONTENT = bytes(byte * byte % 251 for byte in range(300_000))  # of a package
ME = Owner(os.geteuid(), os.getegid())


@pytest.fixture
def vendor(tmp_path: Path) -> ReleaseVendor:
    """A vendor with a key pair."""
    return ReleaseVendor(tmp_path / "vendor")


@pytest.fixture
def built(vendor: ReleaseVendor, monkeypatch: pytest.MonkeyPatch) -> None:
    """This program is a build with the vendor's key."""
    facts = SimpleNamespace(COMMIT="a" * 40, LICENSE_KEYS=[], RELEASE_KEYS=[vendor.public.hex()])
    monkeypatch.setitem(sys.modules, "svc._build", facts)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """An https server with the folder of the release, whose certificate this host accepts."""
    (tmp_path / "tls").mkdir()
    (tmp_path / "release").mkdir(exist_ok=True)
    chain, key = tmp_path / "tls/cert.pem", tmp_path / "tls/key.pem"
    certificates.create(certificates.Certificate(str(chain), str(key)), ["localhost"])
    monkeypatch.setenv("SSL_CERT_FILE", str(chain))
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with served(tmp_path / "release", chain, key) as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Root's folder of downloads."""
    path = tmp_path / "update"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture
def package(tmp_path: Path) -> Package:
    """A package of the source."""
    (tmp_path / "release").mkdir(exist_ok=True)
    (tmp_path / "release/svc.deb").write_bytes(CONTENT)
    (tmp_path / "release/release.json").write_bytes(b"{}")
    digest = hashlib.sha256(CONTENT).hexdigest()
    return Package("debian-12", "amd64", "svc.deb", len(CONTENT), digest)
