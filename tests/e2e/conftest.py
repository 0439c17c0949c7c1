"""The installed program as its users meet it: a server, a registry, real Linux users.

tse-alice and tse-bob have accounts, tse-carol is only a Linux user. Everything
is made before the suite and taken away after it.
"""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import suites
from depths import rounds
from e2e.installation import SVC, Call, Service, environment, run
from e2e.registries import Gate, Shelf, registry_in
from e2e.surroundings import allow, answering, in_database, make_accounts, must, served, template_of
from ports import free_port
from registries import registry_of
from waiting import until

USERS = ("tse-alice", "tse-bob", "tse-carol")
# Linux users to whom a test gives accounts; made at once, so that no uid is used again meanwhile.
LATER = (
    "tse-dora",
    "tse-emil",
    "tse-gisa",
    "tse-hugo",
    "tse-ines",
    "tse-kim",
    "tse-lou",
    "tse-max",
    "tse-nora",
    "tse-olga",
    "tse-pia",
    "tse-quin",
    "tse-rosa",
    "tse-sara",
    "tse-vera",
    "tse-wim",
)
# Linux users of test_transfers, who come in numbers before a release.
TRANSFERRING = tuple(f"tse-t{number:02}" for number in range(rounds(8, 8, 20)))
LOGINS = {"kim": "a ladder in the orchard"}  # of the registry that asks for one


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root."""
    if not (os.geteuid() == 0 and SVC.exists()):
        suites.skip(items, "e2e", "needs root and an installed svc: tests/run e2e")


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The settings of this installation; its TLS listener listens on all addresses, as by default."""
    return environment(free_port()) | {"SVC_HOST": ""}


@pytest.fixture(scope="session")
def registry_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the registry has its data."""
    return tmp_path_factory.mktemp("registry")


@pytest.fixture(scope="session")
def registry(registry_folder: Path) -> Iterator[str]:
    """A real registry on this host with one small image; its address."""
    with registry_in(registry_folder) as address:
        yield address


@pytest.fixture(scope="session")
def shelf(registry: str, registry_folder: Path) -> Shelf:
    """Where that registry's images are put."""
    return Shelf(registry, registry_folder)


@pytest.fixture(scope="session")
def closed_registry(registry: str, registry_folder: Path) -> Iterator[str]:
    """The same images behind a login; its address."""
    with registry_of(registry_folder, LOGINS) as address:
        yield address


@pytest.fixture(scope="session")
def absent_registry() -> str:
    """An address where no registry is."""
    return f"127.0.0.1:{free_port()}"


@pytest.fixture(scope="session")
def whole_gate(registry: str) -> Iterator[Gate]:
    """A gate in front of the registry, for the whole suite."""
    gate = Gate(registry)
    yield gate
    gate.close()


@pytest.fixture
def gate(whole_gate: Gate, service: Service) -> Iterator[Gate]:
    """The gate, wide open; a pull that a failed test has left behind it fails too."""
    yield whole_gate
    whole_gate.break_down()
    under_way = "SELECT id FROM operations WHERE status IN ('queued', 'running')"
    until(lambda: not in_database(service.env, under_way), 30, 0.2)
    whole_gate.opened()


@pytest.fixture(scope="module")
def policy(
    service: Service, registry: str, closed_registry: str, absent_registry: str, whole_gate: Gate
) -> Iterator[list[str]]:
    """All of these registries are allowed, for the tests of a module."""
    hosts = [registry, closed_registry, absent_registry, whole_gate.address]
    allow(service.env, *hosts)
    yield hosts
    allow(service.env, registry)


@pytest.fixture(scope="session")
def service(
    env: dict[str, str], registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The running server with its accounts and registry policy."""
    log = tmp_path_factory.mktemp("server") / "log"
    with served(
        env, registry, log, accounts=USERS[:2], strangers=(*USERS[2:], *LATER, *TRANSFERRING)
    ) as service:
        yield service


@pytest.fixture(autouse=True)
def log_on_failure(service: Service) -> Iterator[None]:
    """Each test finds a server that answers; the log's new part is shown when the test fails."""
    with answering(service):
        yield


@pytest.fixture
def svc(service: Service) -> Call:
    """svc(user, *argv) -> Outcome, with the installation's settings."""
    return functools.partial(run, env=service.env)


@pytest.fixture
def alice(svc: Call) -> Call:
    """alice(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-alice", *argv, **more)


@pytest.fixture
def bob(svc: Call) -> Call:
    """bob(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-bob", *argv, **more)


@pytest.fixture(scope="session")
def fetchers(service: Service) -> None:
    """Accounts for tse-kim and tse-lou, in whose stores images come and go."""
    make_accounts(
        service.env, {"tse-kim": "three kites above the weir", "tse-lou": "a gate of old pear wood"}
    )


@pytest.fixture
def kim(svc: Call, fetchers: None) -> Call:
    """kim(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-kim", *argv, **more)


@pytest.fixture
def lou(svc: Call, fetchers: None) -> Call:
    """lou(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-lou", *argv, **more)


@pytest.fixture
def image_quota(service: Service) -> Iterator[int]:
    """Nobody may have more than a few megabytes of images."""
    limit = 3 << 20
    in_database(service.env, "UPDATE quotas SET max_image_bytes = ?", limit)
    yield limit
    in_database(service.env, "UPDATE quotas SET max_image_bytes = NULL")


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
