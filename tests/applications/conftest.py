"""The installed program, a registry with the public images that the examples begin with, and a user."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from applications import images
from e2e.installation import PASSWORD, SVC, Service, environment, free_port, until
from e2e.registries import registry_of
from e2e.surroundings import served

STATE = Path("/var/lib/svc-applications")
RUN = Path("/run/svc-applications")
USER = "tsx-ada"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Every test here needs root and the host's lock, which tests/run holds."""
    if os.geteuid() == 0 and SVC.exists() and "SVC_TEST_ROUNDS" in os.environ:
        return
    for item in items:
        if "applications" in item.path.parts:
            item.add_marker(pytest.mark.skip(reason="needs an installed svc: tests/run applications"))


@pytest.fixture(autouse=True)
def no_leaks(descriptors_left: Callable[[], dict[int, str]]) -> Iterator[None]:
    """Descriptors only: the server is this process's child."""
    yield
    until(lambda: not descriptors_left(), 30)


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
def debian(registry: str) -> str:
    """The reference of debian:12-slim."""
    return _pushed(registry, "library/debian:12-slim", images.debian, images.ENV)


@pytest.fixture(scope="session")
def python(registry: str) -> str:
    """The reference of python:3.12-slim, whose Python is Debian's."""
    return _pushed(registry, "library/python:3.12-slim", images.python, images.ENV + images.PIP_ENV)


def _pushed(registry: str, image: str, make: Callable[[], Path], env: list[str]) -> str:
    try:
        tree = make()
    except subprocess.CalledProcessError as error:
        pytest.skip(f"{image} cannot be made: {error.stderr.strip()[-300:]}")
    return images.push(registry, image, tree, env)
