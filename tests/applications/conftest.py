"""The installed program, a registry with the public images that the examples begin with, and a user."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import suites
from applications import images
from applications.reader import USER, Make, Reader
from e2e.installation import PASSWORD, SVC, Service, environment
from e2e.surroundings import must, served
from ports import free_port
from registries import registry_of

STATE = Path("/var/lib/svc-applications")
RUN = Path("/run/svc-applications")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root and the host's lock, which tests/run holds."""
    if not (os.geteuid() == 0 and SVC.exists() and "SVC_TEST_DEPTH" in os.environ):
        suites.skip(items, "applications", "needs an installed svc: tests/run applications")


@pytest.fixture(scope="session")
def env() -> dict[str, str]:
    """The settings of this installation."""
    return environment(free_port(), STATE, RUN)


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty registry."""
    with registry_of(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(scope="session")
def service(
    env: dict[str, str], registry: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    """The running server with its account and registry."""
    log = tmp_path_factory.mktemp("server") / "log"
    with served(env, registry, log, accounts=(USER,), password=PASSWORD) as service:
        yield service


@pytest.fixture(scope="session")
def image(registry: str) -> Callable[[str], str]:
    """image(example) -> the reference of the public image that it begins with."""

    @functools.cache
    def pushed(example: str) -> str:
        try:
            made = images.image_of(example)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"the image of {example} cannot be made: {error.stderr.strip()[-300:]}")
        return images.push(registry, made)

    return pushed


@pytest.fixture
def reader(service: Service, image: Callable[[str], str]) -> Iterator[Make]:
    """reader(example, workspace, ready); what was made for it is taken away."""
    made: list[Reader] = []

    def make(example: str, workspace: str, ready: str) -> Reader:
        made.append(Reader(service, image(example), workspace, ready))
        return made[-1]

    yield make
    for one in made:
        one.svc("ws", "delete", one.workspace, "--yes")  # missing where a test has failed before
        must(one.svc("image", "prune", "--yes"))
