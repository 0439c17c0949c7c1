"""Anonymous volumes, which an image's VOLUME makes: they go with their container, whichever way it goes."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent.containers.test_exec import run
from agent.containers.test_replacing import prepared, replaced
from agent.priv_ns import Agent, User
from agent.registry import SHELL, Registry

pytestmark = pytest.mark.root
Make = Callable[..., str]


@pytest.fixture(scope="module")
def with_volume(agent: Agent, registry: Registry) -> str:
    """An image with two VOLUMEs, and one below /work, in the user's store."""
    paths: dict[str, dict[str, str]] = {"/data": {}, "/more": {}, "/work/inside": {}}
    image = registry.put("volumes:1", **SHELL, Volumes=paths)
    assert agent.call("image.pull", image=image).data
    return image


def volumes(user: User) -> set[str]:
    """The names of all volumes of the user."""
    return set(user.podman("volume", "ls", "--quiet").stdout.split())


def test_they_go_with_a_container_that_is_removed(
    user: User, agent: Agent, make: Make, with_volume: str
) -> None:
    before = volumes(user)
    ws = make(image=with_volume)
    run(agent, ws, "sh", "-c", "echo mine >/data/mine; mkdir -p /work/inside; echo mine >/work/inside/mine")
    assert len(volumes(user) - before) == 2
    began = time.monotonic()
    assert agent.call("ctr.remove", id=ws).data == {}
    assert volumes(user) == before
    assert Path(user.home, "work/inside/mine").read_text() == "mine\n", "what is below /work is the user's"
    assert time.monotonic() - began < 8, "ten seconds are what Podman waits if no timeout is given"


def test_they_go_with_a_container_that_is_replaced(
    user: User, agent: Agent, make: Make, image: str, with_volume: str
) -> None:
    before = volumes(user)
    ws = make(image=with_volume)
    agent.call("ctr.stop", id=ws, grace_s=0)
    prepared(agent, ws, with_volume)
    second = prepared(agent, ws, image)
    assert replaced(agent, ws, second)
    assert volumes(user) == before


def test_they_go_with_the_container_that_copies_an_image(user: User, agent: Agent, with_volume: str) -> None:
    before = volumes(user)
    run_as = {"uid": 2999, "gid": 2999}
    agent.call("image.map", image=with_volume, run_as=run_as, copy=True)
    assert volumes(user) == before


def test_a_prune_removes_those_that_have_no_container(
    user: User, agent: Agent, make: Make, with_volume: str
) -> None:
    """Podman leaves them where it is not told; one with a name is a person's, and one in use stays."""
    user.podman("volume", "create", "kept")
    make(image=with_volume, start=False)
    before = volumes(user)
    user.podman("rm", user.podman("create", with_volume).stdout.strip())
    left = volumes(user) - before
    assert len(left) == 3
    assert agent.call("image.usage").data["unused_volumes"] == 3
    assert agent.call("image.prune", ids=[], volumes=False).data["volumes"] == 0
    assert agent.call("image.prune", ids=[], volumes=True).data == {"removed": [], "kept": [], "volumes": 3}
    assert volumes(user) == before
    assert agent.call("image.usage").data["unused_volumes"] == 0
    user.podman("volume", "rm", "kept")
