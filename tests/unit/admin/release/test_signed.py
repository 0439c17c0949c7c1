"""The signed file: what none of this build's keys has signed is refused before it is parsed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from unit.releasing import COMMIT, ReleaseVendor

from svc.admin.release import signed
from svc.errors import ReleaseInvalid

pytestmark = pytest.mark.allow_commands("dpkg-deb")


@pytest.fixture
def folder(vendor: ReleaseVendor, tmp_path: Path) -> Path:
    return vendor.release(tmp_path)


def read(folder: Path, *keys: bytes) -> signed.Release:
    return signed.read((folder / "release.json").read_bytes(), keys)


def test_what_the_vendor_signs_is_read(vendor: ReleaseVendor, folder: Path) -> None:
    release = read(folder, b"\0" * 32, vendor.public)
    assert (release.version, release.commit, release.schema) == ("1.2.0", COMMIT, 9)
    (package,) = release.packages
    assert package.size_bytes == (folder / package.file).stat().st_size


def test_a_build_without_a_key_reads_none(folder: Path) -> None:
    with pytest.raises(ReleaseInvalid, match="this build has no release key"):
        read(folder)


def test_another_vendors_release_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseInvalid, match="is signed with another key"):
        read(folder, ReleaseVendor(tmp_path / "other").public)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"schema":9', b'"schema":8', "was changed after it was signed"),
        (b',"version":"1.2.0"', b' ,"version":"1.2.0"', "was changed after it was signed"),
        (b'"signature":"', b'"signature":"0', "form of a signed release"),
        (b'{"key"', b' {"key"', "form of a signed release"),
        (b'"}\n', b'"}\n\n', "form of a signed release"),
        (b'{"key"', b"[" * 30000 + b'{"key"', "form of a signed release"),
        (b'{"key"', b" " * 70000 + b'{"key"', "has more than 65536 bytes"),
    ],
)
def test_a_changed_file_is_refused(
    vendor: ReleaseVendor, folder: Path, old: bytes, new: bytes, why: str
) -> None:
    path = folder / "release.json"
    content = path.read_bytes()
    assert old in content
    with pytest.raises(ReleaseInvalid, match=why):
        signed.read(content.replace(old, new, 1), (vendor.public,))


PACKAGE = {"os": "debian-12", "architecture": "amd64", "file": "a.deb", "size_bytes": 1, "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ({"format": 2}, "newer format"),
        ({"format": "1"}, "newer format"),
        ({"more": 1}, "unknown members: more"),
        ({"version": "latest"}, "version cannot be read"),
        ({"version": "1.0; rm"}, "version cannot be read"),
        ({"version": 1}, "version cannot be read"),
        ({"min_from": ""}, "min_from cannot be read"),
        ({"commit": "../x"}, "commit cannot be read"),
        ({"schema": True}, "schema cannot be read"),
        ({"schema": 10**9}, "schema cannot be read"),
        ({"published_at": "soon"}, "published_at cannot be read"),
        ({"notes": "x" * 4001}, "notes cannot be read"),
        ({"packages": []}, "packages cannot be read"),
        ({"packages": [PACKAGE] * 65}, "too many lists and objects|packages cannot be read"),
        ({"packages": [PACKAGE | {"file": "../a.deb"}]}, "file cannot be read"),
        ({"packages": [PACKAGE | {"file": "/a.deb"}]}, "file cannot be read"),
        ({"packages": [PACKAGE | {"file": ".a.deb"}]}, "file cannot be read"),
        ({"packages": [PACKAGE | {"file": "a.deb?x"}]}, "file cannot be read"),
        ({"packages": [PACKAGE | {"sha256": "0" * 63}]}, "sha256 cannot be read"),
        ({"packages": [PACKAGE | {"size_bytes": 2**40}]}, "size_bytes cannot be read"),
        ({"packages": [PACKAGE | {"size_bytes": 0}]}, "size_bytes cannot be read"),
        ({"packages": [{}]}, "package has missing or unknown members"),
        ({"packages": [1]}, "package has missing or unknown members"),
    ],
)
def test_what_is_signed_is_checked_all_the_same(
    vendor: ReleaseVendor, folder: Path, members: dict[str, Any], why: str
) -> None:
    vendor.resign(folder, **members)
    with pytest.raises(ReleaseInvalid, match=why):
        read(folder, vendor.public)


def test_a_licence_of_the_same_key_is_no_release(vendor: ReleaseVendor, folder: Path) -> None:
    """The signed text begins with what it is for."""
    content = (folder / "release.json").read_bytes()
    found = signed.FORM.fullmatch(content)
    assert found
    from cryptography.hazmat.primitives import serialization

    private: Any = serialization.load_pem_private_key(vendor.key.read_bytes(), None)
    signature = private.sign(b"svc license 1\n" + found[2]).hex().encode()
    with pytest.raises(ReleaseInvalid, match="was changed"):
        signed.read(content.replace(found[3], signature), (vendor.public,))
