"""The copy of an image for other user ids: what it takes, its progress, its end at any moment."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent.priv_ns import Agent, Pending, User
from agent.registry import SHELL, Registry

from svc_helper.agent.calls import Call
from svc_helper.agent.images import mapping
from svc_helper.agent.images.store import Store

BIG = 96 << 20
CHOWN = b"storage-chown-by-maps"  # the program that makes Podman's copy
NUMBERS = iter(range(2000, 3000))


@pytest.fixture(scope="module")
def large(agent: Agent, registry: Registry) -> Iterator[str]:
    """An image of which a copy takes a while."""
    ref = registry.put("team/large:1", BIG, **SHELL)
    assert agent.call("image.pull", image=ref).data
    yield ref
    assert agent.call("image.remove", image=ref).data


@pytest.fixture
def run_as() -> dict[str, int]:
    """Ids for which there is no copy yet."""
    number = next(NUMBERS)
    return {"uid": number, "gid": number}


def layers_of(user: User) -> list[str]:
    """The layers alone, without a Podman, which would wait for the copy."""
    root = Path(user.home, ".local/share/containers/storage")
    try:
        return [row["id"] for row in json.loads((root / "overlay-layers/layers.json").read_text())]
    except ValueError:
        return []


def traces(user: User) -> tuple[list[str], list[str], list[str]]:
    """The layers of the store, their directories, and the containers that copies were made with."""
    root = Path(user.home, ".local/share/containers/storage")
    names = (path.name for path in (root / "overlay").iterdir())
    directories = [name for name in names if len(name) == 64]
    found = user.podman("ps", "--all", "--format", "{{.Names}}").stdout.split()
    return (
        sorted(layers_of(user)),
        sorted(directories),
        [name for name in found if name.startswith("svc-map-")],
    )


@pytest.mark.root
def test_a_copy_is_made_once(agent: Agent, large: str, user: User, run_as: dict[str, int]) -> None:
    asked = agent.call("image.map", image=large, run_as=run_as, copy=False).data
    assert asked["copy_bytes"] > BIG and not asked["copied"]
    before = traces(user)
    size = agent.call("image.inspect", image=large).data["size_bytes"]
    made = agent.call("image.map", image=large, run_as=run_as, copy=True)
    assert made.data == {"copy_bytes": asked["copy_bytes"], "copied": True}
    assert {one["unit"] for one in made.progress} == {"copied"}
    assert {one["total"] for one in made.progress} == {asked["copy_bytes"]}
    assert len(traces(user)[0]) == len(before[0]) + 1 and not traces(user)[2]
    assert agent.call("image.inspect", image=large).data["size_bytes"] > size + BIG  # it counts
    for copy in (False, True):
        again = agent.call("image.map", image=large, run_as=run_as, copy=copy).data
        assert again == {"copy_bytes": 0, "copied": False}


@pytest.mark.root
def test_a_container_finds_the_copy(
    agent: Agent, large: str, user: User, run_as: dict[str, int], make: Any
) -> None:
    assert agent.call("image.map", image=large, run_as=run_as, copy=True).data["copied"]
    layers = len(traces(user)[0])
    make(image=large, run_as=run_as, start=False)
    assert len(traces(user)[0]) == layers + 1  # the container's own


@pytest.mark.root
def test_two_at_once_make_one(agent: Agent, large: str, user: User, run_as: dict[str, int]) -> None:
    before = len(traces(user)[0])
    calls = [agent.begin("image.map", image=large, run_as=run_as, copy=True) for _ in range(2)]
    for pending in calls:
        assert pending.answer().data["copied"]
    assert len(traces(user)[0]) == before + 1


def pending_is_over(pending: Pending) -> bool:
    """Whether the call was answered, but for its reports."""
    while select.select([pending.sock], [], [], 0)[0]:
        if b"progress" not in pending.sock.recv(65536, socket.MSG_PEEK):
            return True
        pending.sock.recv(65536)
    return False


def copying(user: User) -> int | None:
    """The process that copies, if there is one."""
    for pid in user.processes():
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(CHOWN):
                return pid
        except OSError:
            continue
    return None


@pytest.mark.root
@pytest.mark.parametrize("end", ["cancel", "hang_up"])
def test_an_end_amid_the_copy_leaves_nothing(agent: Agent, large: str, user: User, end: str) -> None:
    before = traces(user)
    for _ in range(10):  # the copy may be quicker than the look at it
        number = next(NUMBERS)
        pending = agent.begin("image.map", image=large, run_as={"uid": number, "gid": number}, copy=True)
        until = time.monotonic() + 20
        while (pid := copying(user)) is None and time.monotonic() < until:
            if pending_is_over(pending):
                break
        if pid is not None:
            os.kill(pid, signal.SIGSTOP)
            break
        pending.answer()
        before = traces(user)
    assert pid is not None
    assert len(layers_of(user)) == len(before[0]) + 1  # not complete
    if end == "cancel":
        pending.cancel()
        assert pending.answer().code == "cancelled"
    else:
        pending.hang_up()
    until = time.monotonic() + 30
    while traces(user) != before and time.monotonic() < until:
        time.sleep(0.1)
    assert traces(user) == before


@pytest.mark.root
def test_an_image_that_is_not_there(agent: Agent, run_as: dict[str, int]) -> None:
    asked = agent.call("image.map", image="localhost/tsa/never:1", run_as=run_as, copy=True)
    assert asked.code == "image_missing"


# --- files of a store that somebody made up ------------------------------------------------

IMAGE = "a" * 64
LAYERS = [{"id": "base", "diff-size": 100}, {"id": "top", "parent": "base", "diff-size": 20}]
IDS = [{"container_id": 0, "host_id": 1, "size": 7}, {"container_id": 7, "host_id": 0, "size": 1}]
MAPPED = {"id": "copy", "uidmap": IDS, "gidmap": IDS}


@pytest.mark.parametrize(
    ("mapped", "size"),
    [
        ({}, 120),
        (MAPPED, 0),
        (MAPPED | {"flags": {"incomplete": True}}, 120),
        (MAPPED | {"gidmap": IDS[:1]}, 120),
        (MAPPED | {"uidmap": 7, "gidmap": "x"}, None),
        (MAPPED | {"flags": 7}, 0),
    ],
)
def test_what_a_copy_takes(tmp_path: Path, mapped: dict[str, Any], size: int | None) -> None:
    for name, rows in (
        ("layers", [*LAYERS, mapped]),
        ("images", [{"id": IMAGE, "layer": "top", "mapped-layers": ["copy"]}]),
    ):
        (tmp_path / f"overlay-{name}").mkdir()
        (tmp_path / f"overlay-{name}/{name}.json").write_text(json.dumps(rows))
    place = Store(str(tmp_path), "overlay")
    assert mapping.copy_bytes(place, IMAGE, {"uid": 7, "gid": 7}) == (120 if size is None else size)
    assert mapping.copy_bytes(place, "b" * 64, {"uid": 7, "gid": 7}) == 0
    assert mapping.copy_bytes(Store(str(tmp_path), "vfs"), IMAGE, {"uid": 7, "gid": 7}) == 0


@pytest.mark.parametrize(
    ("rows", "removed"),
    [
        ([{"id": "1", "names": ["mine"]}, {"id": "2", "names": ["svc-map-x"]}], True),
        ([{"id": "1", "names": ["svc-map-xy"]}, {"names": 7}, "svc-map-x"], False),
        ({"names": ["svc-map-x"]}, False),
    ],
)
def test_what_an_agent_that_was_killed_has_left(tmp_path: Path, rows: Any, removed: bool) -> None:
    """Its container would keep the image for ever: the copy is there, and is not made again."""
    (tmp_path / "overlay-containers").mkdir()
    (tmp_path / "overlay-containers/containers.json").write_text(json.dumps(rows))
    (tmp_path / "locks").mkdir()
    program = tmp_path / "podman"
    program.write_text(f'#!/bin/sh\necho "$*" >> {tmp_path}/commands\n')
    program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    podman: Any = SimpleNamespace(home=SimpleNamespace(own=str(tmp_path), environment=environment))
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        call = Call("r", "image.map", 10, theirs)
        mapping.remove_left(podman, call, Store(str(tmp_path), "overlay"), "svc-map-x")
    commands = tmp_path / "commands"
    assert commands.exists() is removed
    assert not removed or commands.read_text() == "rm --force --volumes --ignore svc-map-x\n"
