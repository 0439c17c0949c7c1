"""Chromium, once for the suite; the pages before a canned API; the installed service, and its user."""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import records
from browser.canned import Canned
from e2e.installation import PASSWORD, SVC, Call, Service, environment, free_port, run, until
from e2e.registries import registry_in
from e2e.surroundings import must, served, template_of

if TYPE_CHECKING:
    from browser.chromium import Driver

STATE = Path("/var/lib/svc-browser")
RUN = Path("/run/svc-browser")
USER = "tsw-ada"
WITH_THE_SERVICE = ("test_story", "test_first_workspace", "test_ways_in", "test_budget", "test_quickstart")


def has_the_service(nodeid: str) -> bool:
    """Is this a test of the installed service? Told from its module's name, which the scheduler sees too."""
    return Path(nodeid.split("::")[0]).stem.startswith(WITH_THE_SERVICE)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """One process has all tests of the installed service, the others share the rest.

    xdist's own groups (3.8) are not seen by pytest 9, which keeps a test's name elsewhere.
    """
    from xdist.scheduler import LoadScopeScheduling

    class OneService(LoadScopeScheduling):
        """Tests one by one, but for those of the service."""

        def _split_scope(self, nodeid: str) -> str:
            return "service" if has_the_service(nodeid) else nodeid

    return OneService(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs a browser, which only this suite's run installs."""
    for item in items:
        if "service" in getattr(item, "fixturenames", ()) and not has_the_service(item.nodeid):
            raise pytest.UsageError(
                f"{item.nodeid} needs the installed service: name its module {WITH_THE_SERVICE[0]}*"
            )
    missing = [name for name in ("/usr/bin/chromium", "/usr/bin/chromedriver") if not os.path.exists(name)]
    if not missing and importlib.util.find_spec("selenium") and os.geteuid() == 0 and SVC.exists():
        return
    for item in items:
        if "browser" in item.path.parts:
            item.add_marker(
                pytest.mark.skip(reason="needs Chromium, root and an installed svc: tests/run browser")
            )


@pytest.fixture(autouse=True)
def no_leaks(descriptors_left: Callable[[], dict[int, str]]) -> Iterator[None]:
    """Descriptors only: the browser and the server are this process's children."""
    yield
    until(lambda: not descriptors_left(), 30)


@pytest.fixture(scope="session")
def browser() -> Iterator[Driver]:
    """One browser for the suite; each test begins with empty storage."""
    from browser.chromium import chromium

    with chromium() as driver:
        yield driver


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    folder = tmp_path_factory.mktemp("certificate")
    chain, key = folder / "chain.pem", folder / "key.pem"
    options = [
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "3",
        "-subj",
        "/CN=localhost",
    ]
    command = ["openssl", "req", *options, "-keyout", key, "-out", chain]
    subprocess.run(command, check=True, capture_output=True)
    return chain, key


@pytest.fixture
def canned(certificate: tuple[Path, Path]) -> Iterator[Canned]:
    """The pages before the mock-up's answers."""
    server = Canned(certificate)
    server.answers = records.everything()
    yield server
    server.close()


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
    from browser.chromium import chromium

    certificate = Path(service.env["SVC_STATE_DIR"]) / "data/tls/cert.pem"
    key = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-pubkey"], check=True, capture_output=True
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


@pytest.fixture
def at_sign_in(browser: Driver, origin: str) -> Iterator[Driver]:
    """The sign-in screen, in a browser that was never there."""
    from browser import chromium

    browser.set_window_size(1440, 900)
    browser.get(f"{origin}/api/version")
    browser.execute_script("localStorage.clear()")
    browser.delete_all_cookies()
    chromium.complaints(browser)
    browser.get(f"{origin}/")
    chromium.until(browser, lambda: browser.current_url == f"{origin}/sign-in", "the sign-in screen")
    yield browser
    browser.get("about:blank")
