"""The sources of the Debian package agree with the rest of the tree; the package itself: tests/machine."""

from __future__ import annotations

import re
from configparser import ConfigParser
from pathlib import Path

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
