"""An https server as the source, with its faults."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from unit.admin.release.conftest import CONTENT, ME
from unit.releasing import Server

from svc.admin.release import fetch
from svc.admin.release.signed import Package
from svc.admin.release.source import Source, download
from svc.errors import ReleaseInvalid, ReleaseUnavailable
from svc.host.owner import Owner


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "WAIT_S", 0.0)


@pytest.fixture
def remote(server: Server) -> Source:
    return Source(server.url, ME)


def ranges(server: Server) -> list[str]:
    return [asked for path, asked in server.requests if path.endswith(".deb")]


def left(folder: Path) -> list[int]:
    return [path.stat().st_size for path in folder.iterdir()]


def test_a_server(remote: Source, server: Server, package: Package, folder: Path) -> None:
    assert remote.manifest() == b"{}"
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT
    download(remote, package, str(folder))
    assert ranges(server) == [""]  # the second time it was there


def test_a_cut_connection_goes_on_where_it_was(
    remote: Source, server: Server, package: Package, folder: Path
) -> None:
    server.cut_after = [100_000, 50_000]
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT
    assert ranges(server) == ["", "bytes=100000-", "bytes=150000-"]


def test_a_later_run_goes_on_too(remote: Source, server: Server, package: Package, folder: Path) -> None:
    server.cut_after = [200_000] + [0] * fetch.TRIES
    with pytest.raises(ReleaseUnavailable, match="the connection was cut"):
        download(remote, package, str(folder))
    assert left(folder) == [200_000]
    server.cut_after.clear()
    server.requests.clear()
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT
    assert ranges(server) == ["bytes=200000-"]


def test_a_part_of_something_else_is_fetched_again(
    remote: Source, server: Server, package: Package, folder: Path
) -> None:
    (folder / f"{package.sha256}.deb").write_bytes(b"x" * 1000)
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT
    assert ranges(server) == ["bytes=1000-", ""]
    (folder / f"{package.sha256}.deb").write_bytes(b"x" * 400_000)  # more than it may have
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT


def test_a_server_without_ranges_begins_again(
    remote: Source, server: Server, package: Package, folder: Path
) -> None:
    server.ranges, server.cut_after = False, [100_000]
    assert Path(download(remote, package, str(folder))).read_bytes() == CONTENT


def test_another_content_is_refused_and_removed(
    remote: Source, package: Package, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "release/svc.deb").write_bytes(CONTENT[:-1] + b"x")
    with pytest.raises(ReleaseInvalid, match="has another content than the one that was signed"):
        download(remote, package, str(folder))
    assert left(folder) == []


@pytest.mark.parametrize("length", [1, 299_999, 300_001, 10**15])
def test_another_size_is_not_even_fetched(
    remote: Source, server: Server, package: Package, folder: Path, length: int
) -> None:
    server.length = length
    with pytest.raises(ReleaseUnavailable, match="has another size than the 300000 bytes"):
        download(remote, package, str(folder))
    assert left(folder) == [0]


def test_a_manifest_that_never_ends_is_bounded(remote: Source, package: Package, tmp_path: Path) -> None:
    (tmp_path / "release/release.json").write_bytes(b" " * 2**20)
    with pytest.raises(ReleaseUnavailable, match="has more than 65536 bytes"):
        remote.manifest()


@pytest.mark.parametrize(
    "place", ["http://localhost/release.json", "file:///etc/passwd", "ftp://localhost/x"]
)
def test_a_redirect_leaves_https_never(remote: Source, server: Server, place: str) -> None:
    server.redirect = place
    with pytest.raises(ReleaseUnavailable, match=r"leads away from https|the server answered 302"):
        remote.manifest()


def test_redirects_are_few(remote: Source, server: Server) -> None:
    server.redirect = f"{server.url}/release.json"
    with pytest.raises(ReleaseUnavailable, match="the server answered 302"):
        remote.manifest()
    assert len(server.requests) <= fetch.REDIRECTS_MAX + 1


@pytest.mark.parametrize("status", [404, 403, 500])
def test_an_error_of_the_server_is_said(
    remote: Source, server: Server, package: Package, folder: Path, status: int
) -> None:
    server.status = status
    with pytest.raises(ReleaseUnavailable, match=f"the server answered {status}"):
        remote.manifest()
    server.requests.clear()
    with pytest.raises(ReleaseUnavailable, match=f"the server answered {status}"):
        download(remote, package, str(folder))
    assert len(server.requests) == (fetch.TRIES if status == 500 else 1)


def test_a_slow_answer_is_given_up(
    remote: Source, server: Server, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "ANSWER_S", 0.2)
    server.stall_s = 0.5
    with pytest.raises(ReleaseUnavailable, match="the server is too slow"):
        remote.manifest()


def test_a_certificate_that_nobody_vouches_for(
    remote: Source, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(ReleaseUnavailable, match="the server's certificate is not accepted: self-signed"):
        remote.manifest()


def test_a_certificate_of_another_name(server: Server, package: Package) -> None:
    with pytest.raises(ReleaseUnavailable, match="the server's certificate is not accepted: IP address mis"):
        Source(server.url.replace("localhost", "127.0.0.1"), ME).manifest()


def test_nobody_listens(package: Package) -> None:
    with pytest.raises(ReleaseUnavailable, match="Connection refused"):
        Source("https://127.0.0.1:9", ME).manifest()


def test_the_proxy_of_the_environment_is_asked(
    remote: Source, package: Package, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    with pytest.raises(ReleaseUnavailable, match="Connection refused"):
        remote.manifest()


@pytest.fixture
def worker(needs_root: None, public_tmp_path: Path, server: Server, package: Package) -> Iterator[Owner]:
    """An account that may not enter root's folder."""
    for path in public_tmp_path.rglob("*"):
        if "update" not in path.relative_to(public_tmp_path).parts:
            path.chmod(path.stat().st_mode | 0o055)
    yield Owner(65534, 65534)


def test_another_account_asks_the_server(
    worker: Owner, server: Server, package: Package, folder: Path
) -> None:
    """Through root's descriptor, in a folder that it cannot enter."""
    source = Source(server.url, worker)
    assert source.manifest() == b"{}"
    server.cut_after = [100_000]
    path = Path(download(source, package, str(folder)))
    assert (path.read_bytes(), path.stat().st_uid) == (CONTENT, os.geteuid())
    server.status = 404
    with pytest.raises(ReleaseUnavailable, match="the server answered 404") as refused:
        source.manifest()
    assert refused.value.hint.startswith("sudo svc admin update check")
