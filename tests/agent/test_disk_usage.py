"""What an overview of disks counts of a real user: store, containers, volumes, files; without Podman."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agent.priv_ns import Agent, User

from svc_helper.agent import disk_usage
from svc_helper.agent.images.store import Store

MIB = 1 << 20


def usage_of(agent: Agent) -> dict[str, Any]:
    return agent.call("disk.usage", seconds=60).data


def row(layer: str, *, parent: str = "", size: int = 0) -> dict[str, Any]:
    return {"id": layer, "parent": parent, "diff-size": size}


def test_layers_count_once_and_hostile_lists_do_no_harm(tmp_path: Path) -> None:
    """Named images, copies for other ids and the build cache, from lists that the user can write."""

    def put(name: str, rows: Any) -> None:
        (tmp_path / name).mkdir(exist_ok=True)
        (tmp_path / name / f"{name.partition('-')[2]}.json").write_text(json.dumps(rows))

    layers = [row("a", size=10), row("b", parent="a", size=5), row("c", parent="a", size=7)]
    layers += [row("copy", size=100), row("d", parent="b", size=1), row("e", parent="e", size=2**70)]
    put("overlay-layers", layers)
    named = {"id": "1", "names": ["x:1"], "layer": "b", "mapped-layers": ["copy"]}
    put(
        "overlay-images",
        [named, {"id": "2", "layer": "c"}, {"id": "3", "layer": "d"}, {"id": 4, "layer": []}],
    )
    store = Store(str(tmp_path), "overlay")
    found = disk_usage.of_images(store)
    assert found == {"images_bytes": 15, "mapped_bytes": 100, "cache_bytes": 8}
    put("overlay-containers", [{"layer": "abc"}, {"layer": "../../etc"}, {"layer": 5}, "x", {}])
    assert disk_usage.writable_layers(store) == ["abc"]
    put("overlay-containers", {"not": "a list"})
    assert disk_usage.writable_layers(store) == []
    (tmp_path / "overlay-containers/volatile-containers.json").write_text(json.dumps([{"layer": "def"}]))
    assert disk_usage.writable_layers(store) == ["def"], "Podman 5 keeps those of builds and --rm there"


def test_shared_roots_are_not_a_users_own() -> None:
    home: Any = SimpleNamespace(roots={"work": "/w", "data": "/d"}, read_only=frozenset({"data"}))
    assert disk_usage.own_roots(home) == ["/w"]


@pytest.fixture
def fresh(user: User) -> Iterator[Agent]:
    """An agent that nobody has called yet."""
    created = user.start_agent()
    yield created
    created.close()


@pytest.mark.root
@pytest.mark.usefixtures("empty_work")
def test_files_of_other_ids_and_a_container_are_counted(
    agent: Agent, user: User, make: Callable[..., str], image: str
) -> None:
    before = usage_of(agent)
    assert before["complete"] and before["images_bytes"] > MIB
    ws = make(command=["sleep", "infinity"])
    script = "head -c 3145728 /dev/urandom >/root-file; mkdir -m 700 /closed"
    script += "; head -c 2097152 /dev/urandom >/closed/f"
    agent.call(
        "ctr.exec", id=ws, command=["sh", "-c", f"{script}; chown -R 999 /closed; sync"], timeout_s=60
    )  # fmt: skip
    work = Path(user.home) / "work"
    data = work / "data"
    data.mkdir()
    (data / "f").write_bytes(os.urandom(4 * MIB))
    uid = user.subordinate()[998]
    for path in (data / "f", data):
        os.chown(path, uid, uid)
        path.chmod(0o700)
    user.podman("volume", "create", "tsa-volume")
    after = usage_of(agent)
    user.podman("volume", "rm", "tsa-volume")
    assert 5 * MIB <= after["containers_bytes"] - before["containers_bytes"] < 6 * MIB
    assert 4 * MIB <= after["files_bytes"] - before["files_bytes"] < 5 * MIB
    assert after["volumes_bytes"] >= before["volumes_bytes"]
    assert (after["images_bytes"], after["complete"]) == (before["images_bytes"], True)


@pytest.mark.root
def test_an_agent_started_for_it_ends_with_it_and_needs_no_podman(fresh: Agent, user: User) -> None:
    podman = [line for line in user.processes().values() if "system service" in line]
    assert usage_of(fresh)["complete"]
    assert fresh.process.wait(30) == 0, "nobody else has needed it"
    assert [line for line in user.processes().values() if "system service" in line] == podman


@pytest.mark.root
def test_an_agent_with_other_work_stays(agent: Agent) -> None:
    agent.call("image.list")
    assert usage_of(agent)["complete"]
    assert agent.call("image.list").data["images"] is not None
    assert agent.process.poll() is None
