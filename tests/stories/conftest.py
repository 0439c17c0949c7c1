"""The pages of the installed service in Chromium, and the person who signs in."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import suites
from e2e.installation import PASSWORD, SVC, Call, Service, environment, run
from e2e.registries import registry_in
from e2e.surroundings import must, served, template_of
from pages import conftest as pages
from ports import free_port

if TYPE_CHECKING:
    from pages.chromium import Driver

STATE = Path("/var/lib/svc-browser")
RUN = Path("/run/svc-browser")
USER = "tsw-ada"
# Fixtures of the canned pages.
artefacts, browser, certificate = pages.artefacts, pages.browser, pages.certificate


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root, and a browser, which a run of the suite installs."""
    is_there = all(os.path.exists(name) for name in (*pages.PROGRAMS, SVC)) and importlib.util.find_spec(
        "selenium"
    )
    if not (os.geteuid() == 0 and is_there):
        suites.skip(items, "stories", "needs Chromium and root: tests/run stories")


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The settings of this installation."""
    return environment(free_port(), STATE, RUN)


@pytest.fixture(scope="session")
def service(env: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """The running server with its account, a template and its image.

    Only below tests/run, which holds the host's lock: beside another run it would remove that one's users.
    """
    if "SVC_TEST_DEPTH" not in os.environ:  # which tests/run always sets
        pytest.skip("the installed service is for tests/run")
    with registry_in(tmp_path_factory.mktemp("registry")) as registry:
        log = tmp_path_factory.mktemp("server") / "log"
        with served(env, registry, log, accounts=(USER,), password=PASSWORD) as service:
            template_of(USER, registry, env)
            yield service


@pytest.fixture
def trusting(service: Service) -> Iterator[Driver]:
    """A browser to which the service's certificate is as good as an authority's: it keeps files."""
    from pages.chromium import chromium

    served_chain = Path(service.env["SVC_STATE_DIR"]) / "data/tls/cert.pem"
    key = subprocess.run(
        ["openssl", "x509", "-in", served_chain, "-noout", "-pubkey"], check=True, capture_output=True
    ).stdout
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-outform", "der"], input=key, check=True, capture_output=True
    ).stdout
    with chromium(trusted=base64.b64encode(hashlib.sha256(der).digest()).decode()) as driver:
        yield driver


@pytest.fixture
def svc(service: Service) -> Call:
    """svc(*argv) -> Outcome, as the person whom the browser signs in."""
    return lambda *argv, **more: run(USER, *argv, env=service.env, **more)


@pytest.fixture
def origin(service: Service) -> str:
    """The address of the real service."""
    return f"https://localhost:{service.env['SVC_PORT']}"


@pytest.fixture
def workspaces(svc: Call) -> Iterator[list[str]]:
    """Two workspaces, one of which runs."""
    names = ["first", "second"]
    for name in names:
        must(svc("ws", "setup", "--template", "base", "--name", name))
    must(svc("ws", "start", "first"))
    yield names
    for name in names:
        svc("ws", "delete", name, "--yes")


@pytest.fixture
def at_sign_in(browser: Driver, origin: str) -> Iterator[Driver]:
    """The sign-in screen, in a browser that was never there."""
    from pages import chromium

    browser.set_window_size(1440, 900)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    chromium.complaints(browser)
    browser.get(f"{origin}/")
    chromium.until(browser, lambda: browser.current_url == f"{origin}/sign-in", "the sign-in screen")
    yield browser
    browser.get("about:blank")
