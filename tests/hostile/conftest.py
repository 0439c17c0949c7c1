"""The installed program, a server of its own, and people of whom one is up to no good.

tsz-alice and tsz-mallory have accounts, tsz-carol is only a Linux user. The
server runs from before the suite's first test until after its last.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import suites
from e2e.installation import SVC, Call, Service, environment, run
from e2e.registries import registry_in
from e2e.surroundings import answering, must, served, template_of
from ports import free_port

STATE = Path("/var/lib/svc-hostile")
RUN = Path("/run/svc-hostile")
USERS = ("tsz-alice", "tsz-mallory", "tsz-carol")
LATER = ("tsz-dan", "tsz-eve", "tsz-fay")  # Linux users to whom a test gives accounts
HEIR = "tsz-gus"  # a Linux user whose uid had another owner
NEWCOMER = "tsz-hal"  # one who never had a Podman
SECRET = "eleven grey otters under ice"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root."""
    if not (os.geteuid() == 0 and SVC.exists()):
        suites.skip(items, "hostile", "needs root and an installed svc: tests/run hostile")


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The settings of this installation."""
    return environment(free_port(), STATE, RUN)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A real registry on this host with one small image; its address."""
    with registry_in(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def service(
    env: dict[str, str], registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The running server with its accounts and registry policy."""
    log = tmp_path_factory.mktemp("server") / "log"
    with served(
        env, registry, log, USERS[:2], (*USERS[2:], *LATER, HEIR, NEWCOMER), password=SECRET + "\n"
    ) as service:
        yield service


@pytest.fixture(autouse=True)
def log_on_failure(request: pytest.FixtureRequest) -> Iterator[None]:
    """Where a test uses the server it answers, and its log's new part is shown when the test fails."""
    if "service" not in request.fixturenames:
        yield
        return
    with answering(request.getfixturevalue("service")):
        yield


@pytest.fixture
def svc(service: Service) -> Call:
    """svc(user, *argv) -> Outcome, with the installation's settings."""
    return functools.partial(run, env=service.env)


@pytest.fixture
def alice(svc: Call) -> Call:
    """alice(*argv) -> Outcome: who must not notice anything."""
    return lambda *argv, **more: svc("tsz-alice", *argv, **more)


@pytest.fixture
def mallory(svc: Call) -> Call:
    """mallory(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tsz-mallory", *argv, **more)


def set_up(service: Service, user: str, registry: str) -> str:
    """A running workspace of the user's, called `lab`; its name."""
    template = template_of(user, registry, service.env)
    must(run(user, "ws", "setup", "--template", template, "--name", "lab", env=service.env))
    must(run(user, "ws", "start", "lab", env=service.env))
    return "lab"


@pytest.fixture(scope="session")
def alices(service: Service, registry: str) -> str:
    """Alice's running workspace."""
    return set_up(service, "tsz-alice", registry)


@pytest.fixture(scope="session")
def mallorys(service: Service, registry: str) -> str:
    """Mallory's workspace, which mallory starts as needed."""
    return set_up(service, "tsz-mallory", registry)


@pytest.fixture
def unmoved(alice: Call, alices: str) -> Iterator[Callable[[], float]]:
    """Alice's commands answer quickly, now and after the test; unmoved() says how long one took."""

    def took() -> float:
        began = time.monotonic()
        must(alice("ws", "list", timeout=20))
        return time.monotonic() - began

    must(alice("ws", "exec", alices, "--", "true"))
    yield took
    assert took() < 2
    must(alice("ws", "exec", alices, "--", "true", timeout=20))
