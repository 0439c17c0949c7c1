"""The installed program as its users meet it: a server, a registry, real Linux users.

tse-alice and tse-bob have accounts, tse-carol is only a Linux user. Everything
is made before the ring and taken away after it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator

import pytest
from e2e.installation import SVC, Call, Outcome, Service, environment, free_port, run, until
from e2e.surroundings import must, registry_in, served, template_of

USERS = ("tse-alice", "tse-bob", "tse-carol")
# Linux users to whom a test gives accounts; made at once, so that no uid is used again meanwhile.
LATER = ("tse-dora", "tse-emil", "tse-gisa", "tse-hugo", "tse-ines")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root."""
    if os.geteuid() == 0 and SVC.exists():
        return
    for item in items:
        if "e2e" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason="needs root and an installed svc: tests/run e2e"))


@pytest.fixture(autouse=True)
def no_leaks(descriptors_left: Callable[[], dict[int, str]]) -> Iterator[None]:
    """Descriptors only: the server, which a test may restart, is this process's child."""
    yield
    until(lambda: not descriptors_left(), 2)


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The settings of this installation; its HTTPS door listens on all addresses, as by default."""
    return environment(free_port()) | {"SVC_HOST": ""}


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
    with served(env, registry, log, accounts=USERS[:2], strangers=(*USERS[2:], *LATER)) as service:
        yield service


@pytest.fixture(autouse=True)
def server_log_on_failure(request: pytest.FixtureRequest, service: Service) -> Iterator[None]:
    """Each test finds a server that answers; the log's new part is shown when the test fails."""
    if service.supervisor is None or service.supervisor.poll() is not None:
        service.start()
    size = service.log.stat().st_size
    yield
    with open(service.log, "rb") as log:
        log.seek(size)
        print("--- the server's log meanwhile ---\n" + log.read()[-8000:].decode(errors="replace"))


@pytest.fixture
def svc(service: Service) -> Call:
    """svc(user, *argv) -> Outcome, with the installation's settings."""

    def call(user: str, *argv: str, stdin: str = "", timeout: float = 90) -> Outcome:
        return run(user, *argv, env=service.env, stdin=stdin, timeout=timeout)

    return call


@pytest.fixture
def alice(svc: Call) -> Call:
    """alice(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-alice", *argv, **more)


@pytest.fixture
def bob(svc: Call) -> Call:
    """bob(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-bob", *argv, **more)


@pytest.fixture(scope="session")
def template(service: Service, registry: str) -> str:
    """Alice's template for the small image; its name."""
    return template_of("tse-alice", registry, service.env)


@pytest.fixture
def workspace(alice: Call, template: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A running workspace of Alice's, for one test; its name."""
    name = "w" + format(time.time_ns() & 0xFFFFFFFF, "x")
    must(alice("ws", "setup", "--template", template, "--name", name))
    must(alice("ws", "start", name))
    yield name
    alice("ws", "stop", name)
    alice("ws", "delete", name, "--yes")


@pytest.fixture
def record(alice: Call) -> Callable[[str], dict[str, object]]:
    """record(name) -> Alice's workspace as the API gives it."""

    def get(name: str) -> dict[str, object]:
        found = alice("api", "GET", f"/api/workspaces/{name}")
        assert found.code == 0, found.err
        return dict(found.json())

    return get
