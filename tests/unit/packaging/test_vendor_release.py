"""The vendor's tool for releases."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from unit.releasing import COMMIT, ReleaseVendor, make_package, vendor

pytestmark = pytest.mark.allow_commands("dpkg-deb")


@pytest.fixture
def own(tmp_path: Path) -> ReleaseVendor:
    return ReleaseVendor(tmp_path / "keys")


def test_what_is_signed_is_read_from_the_package(own: ReleaseVendor, tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("New.\n")
    package = make_package(tmp_path, "2:1.2.0~rc1+b2", Svc_System="")
    folder = own.sign(tmp_path / "release", f"debian-13={package}", notes=tmp_path / "notes")
    found = json.loads((folder / "release.json").read_text())["release"]
    assert (found["version"], found["commit"], found["schema"]) == ("2:1.2.0~rc1+b2", COMMIT, 9)
    assert (found["min_from"], found["notes"], found["format"]) == ("0.1", "New.", 1)
    (one,) = found["packages"]
    assert (one["os"], one["architecture"], one["file"]) == ("debian-13", "amd64", package.name)
    assert one["size_bytes"] == package.stat().st_size == (folder / package.name).stat().st_size


def test_each_package_says_for_which_system_it_is(own: ReleaseVendor, tmp_path: Path) -> None:
    """And of which release: their versions name the systems."""
    packages = [
        make_package(tmp_path, f"1.2.0+deb{number}", Svc_System=f"debian-{number}", Svc_Release="1.2.0")
        for number in (12, 13)
    ]
    folder = own.sign(tmp_path / "release", packages[0], f"debian-13={packages[1]}")
    found = json.loads((folder / "release.json").read_text())["release"]
    assert found["version"] == "1.2.0"
    assert [(each["os"], each["file"]) for each in found["packages"]] == [
        ("debian-12", "svc_1.2.0+deb12_amd64.deb"), ("debian-13", "svc_1.2.0+deb13_amd64.deb"),
    ]  # fmt: skip
    unnamed = make_package(tmp_path, Svc_System="")
    for given, why in (
        (f"debian-12={packages[1]}", "was built for debian-13, not for debian-12"),
        (unnamed, f"does not say for which system it was built: name it, debian-12={unnamed}"),
    ):
        with pytest.raises(SystemExit, match=why):
            own.sign(tmp_path / "refused", given)
    assert not (tmp_path / "refused").exists()


def test_verify_finds_what_was_changed(own: ReleaseVendor, tmp_path: Path) -> None:
    folder = own.release(tmp_path)
    assert f"commit: {COMMIT}" in vendor("verify", "--keys", own.keys, folder)
    package = next(folder.glob("*.deb"))
    package.write_bytes(package.read_bytes()[:-1] + b"x")
    with pytest.raises(SystemExit, match="is not the package that was signed"):
        vendor("verify", "--keys", own.keys, folder)
    path = folder / "release.json"
    content = path.read_bytes()
    for changed, why in (
        (content.replace(b'"schema":9', b'"schema":8'), "was changed"),
        (content.replace(b'{"key"', b'{ "key"'), "does not have the form"),
        (b"{}", "does not have the form"),
    ):
        path.write_bytes(changed)
        with pytest.raises(SystemExit, match=why):
            vendor("verify", "--keys", own.keys, folder)
    path.write_bytes(content)
    os.truncate(own.keys, 0)
    with pytest.raises(SystemExit, match="not in the file of keys"):
        vendor("verify", "--keys", own.keys, folder)


def test_a_mistake_signs_nothing(own: ReleaseVendor, tmp_path: Path) -> None:
    good = make_package(tmp_path, Svc_System="")
    other = make_package(tmp_path, "1.3.0", "d" * 40, Svc_System="")
    foreign = make_package(tmp_path, "1.4.0", Package="other", Svc_System="debian-12")
    no_package = tmp_path / "no.deb"
    no_package.write_bytes(b"text")
    hidden = tmp_path / ".hidden.deb"
    hidden.write_bytes(good.read_bytes())
    for packages in (
        [f"debian-12={good}"] * 2, [f"debian-12={good}", f"debian-13={other}"], [foreign], [no_package],
        [tmp_path / "missing.deb"], [f"debian-12={hidden}"], [f"Debian 12={good}"], [f"={good}"], [],
    ):  # fmt: skip
        with pytest.raises(SystemExit):
            own.sign(tmp_path / "release", *packages)
    with pytest.raises(SystemExit):
        own.sign(tmp_path / "release", f"debian-12={good}", min_from="soon")
    assert not (tmp_path / "release").exists()
