"""Another container in the place of a workspace's own, with real Podman: killed at every step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agent.priv_ns import NO_LIMITS, Agent, User

pytestmark = pytest.mark.root
Make = Callable[..., str]


def prepared(agent: Agent, ws: str, image: str, **changes: Any) -> str:
    """Prepare another container; its id."""
    args = {
        "id": ws, "image": image, "name": "demo", "command": ["sleep", "7777"], "env": {"COLOUR": "red"},
        "resources": NO_LIMITS, "run_as": None, "mounts": [],
    }  # fmt: skip
    data = agent.call("ctr.prepare", **args | changes).data
    assert data, "not prepared"
    return str(data["container_id"])


def replaced(agent: Agent, ws: str, container_id: str) -> bool:
    return bool(agent.call("ctr.replace", id=ws, container_id=container_id).data["replaced"])


def own(agent: Agent, ws: str) -> str | None:
    found = agent.call("ctr.inspect", id=ws).data
    return found["container_id"] if found["exists"] else None


def names(user: User, ws: str) -> set[str]:
    """The names of the containers of a workspace."""
    listed = user.podman("ps", "-a", "--format={{.Names}}", f"--filter=label=svc.workspace={ws}")
    return set(listed.stdout.split())


def test_prepared_beside_it_and_put_in_its_place(agent: Agent, make: Make, user: User, image: str) -> None:
    ws = make(start=False)
    before = own(agent, ws)
    first = prepared(agent, ws, image)
    second = prepared(agent, ws, image)
    assert len({before, first, second}) == 3
    assert own(agent, ws) == before
    assert names(user, ws) == {f"svc-{ws}", f"svc-{ws}-next"}
    assert [row["id"] for row in agent.call("ctr.list").data["containers"]].count(ws) == 1
    assert not replaced(agent, ws, first)
    assert own(agent, ws) == before
    for _ in range(2):
        assert replaced(agent, ws, second)
        assert (own(agent, ws), names(user, ws)) == (second, {f"svc-{ws}"})
    started = agent.call("ctr.start", id=ws).data
    assert (started["container_id"], started["limits_missing"]) == (second, [])
    script = ["sh", "-c", "echo $COLOUR; cat /proc/*/cmdline | grep -c 7777"]
    ran = agent.call("ctr.exec", id=ws, command=script, timeout_s=20).data
    assert ran["stdout"].strip() in ("cmVkCjEK", "cmVkCjIK")  # red, and it runs its command


def test_a_failed_one_changes_nothing(agent: Agent, make: Make, user: User, image: str) -> None:
    ws = make(start=False)
    before = own(agent, ws)
    args = {
        "id": ws, "image": f"{image}0", "name": "demo", "command": None, "env": {}, "resources": NO_LIMITS,
        "run_as": None, "mounts": [],
    }  # fmt: skip
    assert agent.call("ctr.prepare", **args).code == "image_missing"
    assert not replaced(agent, ws, "0" * 64)
    assert (own(agent, ws), names(user, ws)) == (before, {f"svc-{ws}"})


def test_one_that_runs_is_left_running(agent: Agent, make: Make, image: str) -> None:
    ws = make()
    before = own(agent, ws)
    container_id = prepared(agent, ws, image)
    refused = agent.call("ctr.replace", id=ws, container_id=container_id)
    assert refused.code == "conflict"
    found = agent.call("ctr.inspect", id=ws).data
    assert (found["container_id"], found["status"]) == (before, "running")


@pytest.mark.parametrize("step", ["prepared", "removed", "renamed"])
def test_killed_between_its_steps(agent: Agent, make: Make, user: User, image: str, step: str) -> None:
    """What an agent that was killed has left is what its Podman has: the next call goes on from there."""
    ws = make(start=False)
    container_id = prepared(agent, ws, image)
    if step in ("removed", "renamed"):
        user.podman("rm", f"svc-{ws}")
    if step == "renamed":
        user.podman("rename", f"svc-{ws}-next", f"svc-{ws}")
    assert replaced(agent, ws, container_id)
    assert (own(agent, ws), names(user, ws)) == (container_id, {f"svc-{ws}"})
    record = Path(user.home, f".local/state/svc/workspaces/{ws}/created.json")
    assert json.loads(record.read_text())["env"] == {"COLOUR": "red"}
    assert agent.call("ctr.start", id=ws).data["container_id"] == container_id


def test_a_removal_takes_the_prepared_one_too(agent: Agent, make: Make, user: User, image: str) -> None:
    ws = make(start=False)
    prepared(agent, ws, image)
    assert agent.call("ctr.remove", id=ws).data == {}
    assert names(user, ws) == set()
