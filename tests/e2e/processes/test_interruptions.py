"""Pulls and builds interrupted: the service killed whole, the user's processes too, cancelled, left alone."""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e import operations
from e2e.installation import SVC, Call, Process, Service, pieces_of, process, processes_of, remove_pieces, run
from e2e.registries import REPOSITORY, Gate, Shelf
from e2e.surroundings import in_database, must, new_template, podman
from waiting import until

MIB = 1 << 20
BIG = 4 * MIB
USER = "tse-lou"
NUMBERS = itertools.count(1)

Begun = Callable[[], tuple[str, str]]
Kill = Callable[[Service], list[Process]]


@pytest.fixture(scope="module", autouse=True)
def allowed(policy: list[str], fetchers: None) -> None:
    """All the registries that the tests name."""


@pytest.fixture
def template(service: Service) -> Iterator[Callable[[dict[str, object]], dict[str, Any]]]:
    """template(source) -> the record of a new template of tse-lou's."""
    created: list[str] = []

    def create(source: dict[str, object]) -> dict[str, Any]:
        record = new_template(USER, service.env, f"cut-{next(NUMBERS)}", source)
        created.append(record["id"])
        return record

    yield create
    for name in created:
        run(USER, "api", "DELETE", f"/api/templates/{name}/image", env=service.env)
        run(USER, "template", "delete", name, "--yes", env=service.env)


@pytest.fixture
def pulling(lou: Call, shelf: Shelf, gate: Gate, template: Callable[..., dict[str, Any]]) -> Begun:
    """pulling() -> (template, operation) of a pull that is held in the middle of a big layer."""

    def begin() -> tuple[str, str]:
        tag = f"held-{next(NUMBERS)}"
        shelf.put(tag, {"big": os.urandom(BIG)})
        created = template({"type": "registry", "image_ref": f"{gate.address}/{REPOSITORY}:{tag}"})
        gate.hold_after(BIG // 2)
        operation = operations.begin(lou, "image", "pull", created["id"])
        until(gate.holds, 20)
        return created["id"], operation

    return begin


@pytest.fixture
def building(lou: Call, registry: str, template: Callable[..., dict[str, Any]]) -> Begun:
    """building() -> (template, operation) of a build that is in its second step, which takes a while."""

    def begin() -> tuple[str, str]:
        seconds = f"3.{next(NUMBERS):03}"
        text = f"FROM {registry}/{REPOSITORY}:1\nRUN sleep {seconds}; echo done > /done\nRUN true\n"
        created = template({"type": "dockerfile", "dockerfile": text})
        operation = operations.begin(lou, "image", "build", created["id"])
        until(lambda: [one for one in processes_of(USER) if one.args == f"sleep {seconds}"], 20)
        return created["id"], operation

    return begin


def of_service(service: Service) -> list[Process]:
    """Everything of svc itself."""
    return service.members()


def with_agents(service: Service) -> list[Process]:
    """And the user's agent."""
    return service.members() + [one for one in processes_of(USER) if "svc_helper.agent" in one.args]


def everything(service: Service) -> list[Process]:
    """And everything else that runs as the user: Podman, the pull, the build."""
    return service.members() + processes_of(USER)


def kill_all(service: Service, chosen: Kill) -> None:
    """kill -9 of them all at once, until none is left; then the server is started again."""
    victims = chosen(service)
    while victims:
        for one in victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
        if service.supervisor:
            service.supervisor.wait(20)
            service.supervisor = None
        victims = [one for one in victims if process(one.pid)]
        if chosen is everything:
            victims += processes_of(USER)
    service.start()


@pytest.fixture(autouse=True)
def no_pieces() -> None:
    """None before the test; only one in which Podman itself is killed may leave some."""
    remove_pieces(pwd.getpwnam(USER).pw_uid)


def nothing_left() -> None:
    """A pull or a build of the user's has left nothing where nothing may stay."""
    left: list[object] = []

    def found() -> bool:
        left[:] = [
            *pieces_of(pwd.getpwnam(USER).pw_uid),
            *podman(USER, "ps", "--all", "--external", "--quiet").out.split(),
        ]
        return not left

    try:
        until(found, 30, 0.5)
    except AssertionError:
        pytest.fail(f"left behind: {left}")


def all_is_well(service: Service, call: Call, name: str, operation: str, *, left: bool = False) -> None:
    """The operation has ended well, the image is ready, nothing is under way, the store is whole."""
    operations.succeeded(call, operation)
    assert must(call("image", "status", name, "--json")).json()["status"] == "ready"
    stuck = "SELECT id, status FROM operations WHERE status IN ('queued', 'running')"
    assert in_database(service.env, stuck) == []
    must(podman(USER, "system", "df"))
    if not left:
        nothing_left()


@pytest.mark.parametrize("chosen", [of_service, with_agents, everything])
def test_killed_during_a_pull(service: Service, lou: Call, gate: Gate, pulling: Begun, chosen: Kill) -> None:
    name, operation = pulling()
    kill_all(service, chosen)
    assert operations.record(lou, operation)["status"] in ("queued", "running")
    gate.go_on()
    all_is_well(service, lou, name, operation, left=chosen is everything)


@pytest.mark.parametrize("chosen", [of_service, with_agents, everything])
def test_killed_during_a_build(service: Service, lou: Call, building: Begun, chosen: Kill) -> None:
    name, operation = building()
    kill_all(service, chosen)
    all_is_well(service, lou, name, operation, left=chosen is everything)
    must(lou("template", "enable", name))


def test_a_stop_is_clean_and_the_pull_goes_on_after_it(
    service: Service, lou: Call, gate: Gate, pulling: Begun
) -> None:
    name, operation = pulling()
    assert service.stop() < 5
    gate.go_on()
    service.start()
    all_is_well(service, lou, name, operation)


def test_the_client_is_killed_while_it_waits(
    service: Service, lou: Call, gate: Gate, shelf: Shelf, template: Callable[..., dict[str, Any]]
) -> None:
    shelf.put("waited", {"big": os.urandom(BIG)})
    created = template({"type": "registry", "image_ref": f"{gate.address}/{REPOSITORY}:waited"})
    gate.hold_after(BIG // 2)
    account = pwd.getpwnam(USER)
    client = subprocess.Popen(
        [SVC, "image", "pull", created["id"], "--wait"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL, env=service.env, cwd="/", user=account.pw_uid, group=account.pw_gid,
        extra_groups=[],
    )  # fmt: skip
    until(gate.holds, 20)
    client.kill()
    client.wait()
    gate.go_on()
    until(lambda: must(lou("image", "status", created["id"], "--json")).json()["status"] == "ready", 20, 0.2)


def test_cancelled_during_a_pull(service: Service, lou: Call, gate: Gate, pulling: Begun) -> None:
    """At once, with nothing left; the next pull is like the first."""
    name, operation = pulling()
    ended = operations.cancel(lou, operation)
    assert ended["status"] == "cancelled"
    gate.go_on()
    assert must(lou("image", "status", name, "--json")).json()["status"] in ("missing", "failed")
    nothing_left()
    all_is_well(service, lou, name, operations.begin(lou, "image", "pull", name))


def test_cancelled_during_a_build(service: Service, lou: Call, building: Begun) -> None:
    name, operation = building()
    ended = operations.cancel(lou, operation)
    assert ended["status"] == "cancelled"
    until(lambda: not [one for one in processes_of(USER) if one.args.startswith("sleep 3.")], 5)
    nothing_left()
    all_is_well(service, lou, name, operations.begin(lou, "image", "build", name))
