"""Chromium, once for each process; the pages before a canned API. No root, no installed service."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import suites
from pages import records
from pages.canned import Canned, Listener, self_signed

from svc.web import pieces

if TYPE_CHECKING:
    from pages.chromium import Driver

PROGRAMS = ("/usr/lib/chromium/chromium-headless-shell", "/usr/bin/chromedriver")
INSTALL = (
    "sudo apt-get install --no-install-recommends"
    " chromium-headless-shell chromium-driver fonts-liberation fonts-dejavu-core"
)
PIECES = Path(sys.prefix) / "share/pieces"  # tests/run pages fetches them


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs a browser and what drives it."""
    is_there = all(os.path.exists(name) for name in PROGRAMS) and importlib.util.find_spec("selenium")
    if not is_there:
        suites.skip(items, "pages", f"needs Chromium: {INSTALL}; then: tests/run pages")


@pytest.fixture(scope="session", autouse=True)
def fetched_pieces() -> Iterator[None]:
    """The pieces of others that tests/run has fetched, not those of an installation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pieces, "FOLDER", PIECES)
        yield


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    """One browser for the suite; each test begins with empty storage."""
    from pages.chromium import SHELL, chromium

    with chromium(program=SHELL) as driver:
        # Without it the shell asks for no download.
        folder = str(tmp_path_factory.mktemp("downloads"))
        driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
        yield driver


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    return self_signed(tmp_path_factory.mktemp("certificate"))


@pytest.fixture(scope="session")
def listener(certificate: tuple[Path, Path]) -> Iterator[Listener]:
    """One origin for all tests of a process, so that the browser keeps what it has compiled."""
    found = Listener(certificate)
    yield found
    found.close()


@pytest.fixture
def canned(listener: Listener) -> Iterator[Canned]:
    """The pages before the mock-up's answers."""
    server = Canned(listener)
    server.answers = records.everything()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def artefacts(request: pytest.FixtureRequest) -> Iterator[None]:
    """A picture of the page when a test ends, where SVC_TEST_ARTEFACTS says."""
    yield
    folder: Any = os.environ.get("SVC_TEST_ARTEFACTS")
    if folder and "browser" in request.fixturenames:
        driver = request.getfixturevalue("browser")
        name = "".join(c if c.isalnum() else "-" for c in request.node.name)
        if driver.current_url != "about:blank":
            driver.save_screenshot(f"{folder}/{name}.png")
