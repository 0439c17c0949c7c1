"""A directory as the source, and what root keeps of a download."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.admin.release.conftest import CONTENT, ME

from svc.admin.release.signed import Package
from svc.admin.release.source import Source, download
from svc.errors import HostRefused, ReleaseInvalid, ReleaseUnavailable, StorageFull


@pytest.fixture
def local(tmp_path: Path) -> Source:
    return Source(f"{tmp_path}/release/", ME)


def test_a_directory(local: Source, package: Package, folder: Path, tmp_path: Path) -> None:
    assert local.manifest() == b"{}"
    path = Path(download(local, package, str(folder)))
    assert path.read_bytes() == CONTENT
    assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "release/release.json").unlink()
    with pytest.raises(ReleaseUnavailable, match="No such file"):
        local.manifest()
    os.mkfifo(tmp_path / "release/release.json")
    with pytest.raises(ReleaseUnavailable, match="is not a regular file"):
        local.manifest()
    (tmp_path / "release/svc.deb").write_bytes(CONTENT[:-1] + b"x")
    path.unlink()
    with pytest.raises(ReleaseInvalid, match="has another content"):
        download(local, package, str(folder))
    (tmp_path / "release/svc.deb").write_bytes(CONTENT + b"x")
    with pytest.raises(ReleaseInvalid, match="has 300001 bytes, and 300000 were signed"):
        download(local, package, str(folder))


def test_no_source_is_said() -> None:
    with pytest.raises(HostRefused, match="no source of releases is set") as refused:
        Source("", ME)
    assert "SVC_UPDATE_SOURCE" in refused.value.hint


def test_a_full_disk_is_known_before(local: Source, package: Package, folder: Path) -> None:
    with pytest.raises(StorageFull, match="not enough room in"):
        download(local, package._replace(size_bytes=2**60), str(folder))
