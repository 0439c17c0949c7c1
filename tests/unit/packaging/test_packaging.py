"""The sources of the Debian package agree with the rest of the tree; the package itself: tests/machine."""

from __future__ import annotations

import re
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
DEBIAN = ROOT / "packaging/debian"
# of the quickstart's list: its virtual environment, its registry and image, and what every Debian has
NOT_NEEDED = {"python3-venv", "docker-registry", "busybox-static", "util-linux"}


def listed(name: str) -> set[str]:
    lines = (ROOT / "packaging/quickstart.d" / name).read_text().splitlines()
    return {line for line in lines if line and not line.startswith("#")}


def field(name: str) -> set[str]:
    """The packages of a relation of packaging/debian/control, without versions."""
    text = (DEBIAN / "control").read_text().split("\nPackage: svc\n")[1]
    value = re.search(rf"^{name}:(.*(?:\n .*)*)", text, re.M)[1]
    return {re.split(r"[ (]", each.strip())[0] for each in re.split("[,|]", value) if each.strip()[:1] != "$"}


def test_the_package_depends_on_what_the_quickstart_installs() -> None:
    assert listed("packages") - NOT_NEEDED <= field("Depends") | field("Recommends")
    assert listed("packages-systemd") <= field("Recommends")


def test_its_changelog_has_the_version_of_the_tree() -> None:
    config = ConfigParser()
    config.read(ROOT / "setup.cfg")
    first = (DEBIAN / "changelog").read_text().splitlines()[0]
    assert first.startswith(f"svc ({config['metadata']['version']}) ")


def test_what_it_ships_under_etc_are_its_settings_files() -> None:
    shipped = re.findall(r'"\$TREE(/etc/\S+)"', (DEBIAN / "fill").read_text())
    assert sorted(shipped) == (DEBIAN / "conffiles").read_text().splitlines()


def test_each_command_of_the_page_is_run_on_the_machine() -> None:
    """By `tests/run machine`, and by `tests/run release -- distupgrade`; but how the package is built:
    tests/machine/debs calls what `make deb` does."""
    section, commands = "", set()
    for line in (ROOT / "docs/install.md").read_text().splitlines():
        if line.startswith("## "):
            section, number = line[3:], 0
        elif line.startswith("    "):
            number += 1
            commands.add((section, number))
    checks = (ROOT / "tests/machine/guest/boot-3.sh").read_text()
    ran = {(section, int(number)) for section, number in re.findall(r"as_written (\w+) (\d)", checks)}
    rows = "".join(path.read_text() for path in (ROOT / "tests/machine/distupgrade.d").glob("*.sh"))
    (upgrade,) = re.findall(r"^SECTION='(.+)'$", rows, re.M)
    ran |= {(upgrade, int(number)) for number in re.findall(r'as_written "\$SECTION" (\d)', rows)}
    assert {each for each in commands if each[0] != "Build the package"} == ran
    assert ("Build the package", 1) in commands and ("Build the package", 2) not in commands


@pytest.mark.allow_commands("dpkg")
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("0.1.0+deb12", "0.1.0+deb13"),  # a dist-upgrade
        ("0.1.0+deb13", "0.1.1+deb12"),  # the next release, on each
        ("0.1.0+deb9", "0.1.0+deb12"),
        ("0.1.0+deb13", "0.1.0.1+deb12"),  # between two releases
        ("0.2.0~rc1+deb13", "0.2.0+deb12"),
        ("0.1.0", "0.1.0+deb12"),  # built before versions named a system
    ],
)
def test_versions_sort_by_release_and_then_by_system(older: str, newer: str) -> None:
    assert subprocess.run(["dpkg", "--compare-versions", older, "lt", newer]).returncode == 0


@pytest.mark.allow_commands("build-deb")
@pytest.mark.parametrize("version", ["0.2.0+a", "0.2.0+deb12", "v1", "0.2.0 1"])
def test_a_release_has_no_system_in_its_version(version: str) -> None:
    """The build appends it; what comes after another + would sort by its letters."""
    command = [ROOT / "packaging/build-deb", "--version", version]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, f"{version} is no version" in done.stderr) == (1, True)
