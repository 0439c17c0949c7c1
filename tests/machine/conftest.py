"""The Debian tree that the machine boots, and the packages that it installs; built once."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = Path("/var/cache/svc-tests/machine")
RELEASE_KEY = CACHE.parent / "release.pem"


@pytest.fixture(scope="session")
def tree() -> Path:
    """A Debian 12 ready to boot; the wheels for a package are in the cache then."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it boots a machine")
    made = CACHE / "tree"
    subprocess.run([HERE / "build", CACHE, made], check=True, timeout=900)
    return made


@pytest.fixture(scope="session")
def debs(tree: Path) -> Path:
    """A folder with the packages: `0` and `again` have the checkout's version, `1` a later one."""
    built = CACHE / "debs"
    subprocess.run([HERE / "debs", CACHE, built], check=True, timeout=600)
    return built


@pytest.fixture(scope="session")
def machine(tree: Path, debs: Path) -> Iterator[Path]:
    """The tree with the packages in /opt/debs, ready to boot."""
    (tree / "opt/debs").mkdir()
    shutil.copy(
        RELEASE_KEY, tree / "opt/debs"
    )  # of the tests' own vendor, whose public key is in the packages
    for folder in ("0", "1"):
        subprocess.run(["cp", *(debs / folder).glob("*.deb"), tree / "opt/debs"], check=True)
    try:
        yield tree
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)
