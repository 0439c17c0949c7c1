"""The package as dpkg has it, made into a .deb again: dpkg cannot tell it from the first."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.admin.packages import PROGRAMS, Place

from svc.admin.backup import package
from svc.errors import FileRefused, HostRefused

pytestmark = pytest.mark.allow_commands(*PROGRAMS, "sh")


def contents(place: Place, deb: Path) -> list[str]:
    """What a .deb brings: modes, owners, names, without times."""
    lines = place.run("dpkg-deb", "-c", str(deb)).splitlines()
    return sorted(" ".join([*line.split()[:2], *line.split()[5:]]) for line in lines)


def test_a_rebuilt_package_is_the_same(place: Place, folder: Path) -> None:
    package.rebuild(str(folder), "svc.deb")
    again = folder / "svc.deb"
    assert os.listdir(folder) == ["svc.deb"]
    assert contents(place, again) == contents(place, place.debs["1"])
    assert package.fields(str(again)) == ("svc", "1", place.architecture, package.system(), "1")
    fields = place.run("dpkg-deb", "-f", str(again))
    assert " for tests" in fields
    assert f"Svc-System: {package.system()}\n" in fields
    assert "Status" not in fields
    for name in ("prerm", "conffiles"):
        first, second = (place.run("dpkg-deb", "-I", str(deb), name) for deb in (place.debs["1"], again))
        assert first == second
    place.dpkg("-i", str(place.debs["2"]))
    package.install(str(again))
    assert (place.version, place.recorded) == ("1", "1 installed")
    assert place.dpkg("--verify", "svc") == ""
    assert "prerm 1 upgrade 1" in place.calls, "its scripts were told of the switch"


def test_an_administrators_configuration_stays(place: Place, folder: Path) -> None:
    own = place.path / "etc/svc-test.conf"
    own.write_text("# mine\n")
    package.rebuild(str(folder), "svc.deb")
    package.install(str(place.debs["2"]))
    assert own.read_text() == "# mine\n"
    package.install(str(folder / "svc.deb"))
    assert own.read_text() == "# mine\n"
    assert place.dpkg("--verify", "svc").split() == ["??5??????", "c", "/etc/svc-test.conf"], "dpkg can tell"
    package.install(str(place.debs["2"]))
    assert own.read_text() == "# mine\n", "nor by an upgrade after the way back"


def test_an_unchanged_configuration_follows_the_version(place: Place, folder: Path) -> None:
    own = place.path / "etc/svc-test.conf"
    package.rebuild(str(folder), "svc.deb")
    package.install(str(place.debs["2"]))
    assert own.read_text() == "# of version 2\n"
    package.install(str(folder / "svc.deb"))
    assert own.read_text() == "# of version 1\n"


@pytest.mark.parametrize("gone", ["etc/svc-test.conf", "etc"])
def test_configuration_that_was_removed_does_not_stop_an_upgrade(
    place: Place, folder: Path, gone: str
) -> None:
    """Also with its directory; a set that is made then brings neither back."""
    (place.path / "etc/svc-test.conf").unlink()
    if gone == "etc":
        (place.path / "etc").rmdir()
    package.rebuild(str(folder), "svc.deb")
    package.install(str(place.debs["2"]))
    assert place.recorded == "2 installed"
    package.install(str(folder / "svc.deb"))
    assert place.recorded == "1 installed"
    assert not (place.path / "etc/svc-test.conf").exists()


@pytest.mark.parametrize("damage", ["changed", "missing", "link", "configuration removed"])
def test_only_what_the_package_brought_is_kept(place: Place, folder: Path, damage: str) -> None:
    path = place.path / "usr/lib/svc/python/version"
    if damage == "configuration removed":
        (place.path / "etc/svc-test.conf").unlink()
        package.rebuild(str(folder), "svc.deb")
        assert " ./etc/svc-test.conf" not in place.run("dpkg-deb", "-c", str(folder / "svc.deb"))
        return
    path.unlink()
    if damage == "changed":
        path.write_text("1x")
    elif damage == "link":
        path.symlink_to("/etc/passwd")
    with pytest.raises(FileRefused, match="version is not as the package svc brought it") as raised:
        package.rebuild(str(folder), "svc.deb")
    assert raised.value.hint.startswith("sudo dpkg --verify svc")


def test_which_program_is_of_the_package(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    assert package.own() == package.Installed("1", place.architecture, package.system(), "1")
    monkeypatch.setattr(package, "__file__", "/opt/svc/lib/svc/admin/backup/package.py")
    assert package.own() is None
    assert package.installed() is not None
    place.dpkg("--purge", "svc")
    assert package.installed() is None


def test_what_a_program_said_is_told(tmp_path: Path) -> None:
    assert package.run(["sh", "-c", "echo $SVC_SWITCHING"], 10, {"SVC_SWITCHING": "1"}) == "1\n"
    with pytest.raises(HostRefused, match=r"sh failed \(3\): one / two"):
        package.run(["sh", "-c", "echo one >&2; echo two >&2; exit 3"], 10)
    with pytest.raises(HostRefused, match="did not end within"):
        package.run(["sh", "-c", "exec sleep 5"], 0.1)
