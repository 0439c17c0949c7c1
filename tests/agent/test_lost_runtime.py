"""/run/user/UID that somebody has emptied below a running agent, with workspaces that run."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from agent.priv_ns import NO_LIMITS, Agent, User, wait_for

from svc.admin.checks import accounts

pytestmark = pytest.mark.root
WS = "ws-1057da7a"
COMMAND = ["sleep", "4747"]


@pytest.fixture
def running(user: User, image: str) -> Iterator[Agent]:
    """An agent of the test's own, with a running workspace."""
    agent = user.start_agent()
    assert agent.call("image.pull", image=image).data
    agent.call(
        "ctr.create", id=WS, image=image, name="demo", command=COMMAND, env={}, resources=NO_LIMITS,
        run_as=None, mounts=[],
    )  # fmt: skip
    assert agent.call("ctr.start", id=WS).data["pid"]
    yield agent
    agent.kill()


def sleepers(user: User) -> list[int]:
    """The first processes of the workspace's container."""
    return [pid for pid, line in user.processes().items() if line == "sleep 4747 "]


def emptied(user: User) -> None:
    """As a clean-up script does it."""
    user.run("sh", "-c", f"rm -rf {user.runtime}/*")


@pytest.mark.parametrize("deed", ["ctr.start", "ctr.stop", "ctr.remove"])
def test_the_agent_ends_and_what_ran_is_ended(user: User, running: Agent, deed: str) -> None:
    """Nobody else would end it, and a start would run a second copy on the same files."""
    (first,) = sleepers(user)
    assert accounts._forgotten("/proc", user.uid) == 0
    emptied(user)
    assert accounts._forgotten("/proc", user.uid) == 1, "which the doctor says"
    lost = running.call("ctr.list")
    assert (lost.code, "run the command again" in lost.message["message"]) == ("unavailable", True)
    assert running.process.wait(10) == 0
    agent = user.start_agent()
    try:
        assert [row["status"] for row in agent.call("ctr.list").data["containers"]] != ["running"]
        assert sleepers(user) == [first]
        assert agent.call(deed, id=WS, **({"grace_s": 1} if deed == "ctr.stop" else {})).message["ok"]
        wait_for(lambda: not os.path.exists(f"/proc/{first}"), 5)
        assert len(sleepers(user)) == (deed == "ctr.start")
        if deed == "ctr.start":
            assert agent.call("ctr.inspect", id=WS).data["status"] == "running"
        agent.call("ctr.remove", id=WS)
        assert sleepers(user) == []
    finally:
        agent.close()


def test_a_start_of_what_runs_changes_nothing(user: User, running: Agent) -> None:
    (first,) = sleepers(user)
    assert running.call("ctr.start", id=WS).data["pid"]
    assert sleepers(user) == [first]
    running.call("ctr.remove", id=WS)
