"""The Debian tree that the machine boots, and the packages that it installs; built once."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = Path("/var/cache/svc-tests")
HOST = platform.freedesktop_os_release().get("VERSION_CODENAME", "")
# The host's Debian, or trixie for `tests/run release -- debian13`: a tree, wheels and packages of its own.
SUITE = os.environ.get("SVC_MACHINE_SUITE") or HOST
CACHES = {"bookworm": TESTS / "machine", "trixie": TESTS / "debian13"}
CACHE = CACHES.get(SUITE, TESTS / "machine")
OWN = Path("/var/tmp/svc-machine")  # this run's: trees and packages, on the disk
RELEASE_KEY = TESTS / "release.pem"


@pytest.fixture(scope="session")
def tree(needs_root: None) -> Path:
    """A Debian ready to boot; the wheels for a package are in the cache then."""
    made = OWN / "tree"
    subprocess.run([HERE / "build", CACHE, made], check=True, timeout=1800)
    return made


@pytest.fixture(scope="session")
def debs(tree: Path) -> Path:
    """A folder with the packages: `0` and `again` have the checkout's version, `1` a later one, and
    `previous` is the release before, if the checkout's history has it."""
    built = OWN / "debs"
    subprocess.run([HERE / "debs", CACHE, built, tree], check=True, timeout=1800)
    return built


@pytest.fixture(scope="session")
def machine(tree: Path, debs: Path) -> Iterator[Path]:
    """The tree with the packages in /opt/debs, ready to boot."""
    (tree / "opt/debs").mkdir()
    shutil.copy(
        RELEASE_KEY, tree / "opt/debs"
    )  # of the tests' own vendor, whose public key is in the packages
    for folder in ("0", "1", "previous"):
        for path in (debs / folder).glob("*.deb"):
            shutil.copy(path, tree / "opt/debs")
    try:
        yield tree
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)
