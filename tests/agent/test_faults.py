"""Agents, Podmans and pause processes that are killed: what runs on, and what the next call finds."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import time
from collections.abc import Callable

import pytest
from agent.priv_ns import Agent, User

pytestmark = pytest.mark.root
Make = Callable[..., str]


def pids(user: User, arguments: str) -> list[int]:
    """The user's processes with these words in their command lines."""
    return [pid for pid, line in user.processes().items() if arguments in line]


def kill(found: list[int], how: int = signal.SIGKILL) -> None:
    """Kill them all."""
    assert found
    for pid in found:
        with contextlib.suppress(ProcessLookupError):  # some end with those killed before them
            os.kill(pid, how)
    time.sleep(0.1)


def says(agent: Agent, workspace_id: str) -> str:
    """A sign of life out of a workspace."""
    done = agent.call("ctr.exec", id=workspace_id, command=["echo", "alive"], timeout_s=20).data
    return base64.b64decode(done["stdout"]).decode()


def test_an_agent_that_ends_takes_only_its_podman_along(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    before = set(user.processes())
    services = len(pids(user, "system service"))  # of agents killed earlier too
    other = user.start_agent()
    assert other.call("ctr.inspect", id=ws).data["status"] == "running"
    assert len(pids(user, "system service")) == services + 1
    assert other.close() == 0
    time.sleep(0.3)
    assert set(user.processes()) == before
    assert says(agent, ws) == "alive\n"


def test_the_agent_after_a_killed_one_knows_the_workspaces(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    other = user.start_agent()
    call = other.begin("ctr.exec", id=ws, command=["sleep", "30"], timeout_s=60)
    time.sleep(0.3)
    other.kill()
    assert call.answer(5).code == "died"
    again = user.start_agent()
    assert again.call("ctr.start", id=ws).data["pid"] == agent.call("ctr.inspect", id=ws).data["pid"]
    assert says(again, ws) == "alive\n"
    assert again.close() == 0


def test_a_killed_podman_is_not_missed(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    kill(pids(user, "system service"))
    assert agent.call("ctr.inspect", id=ws).data["status"] == "running"
    assert agent.call("ctr.stop", id=ws, grace_s=5).data["exit_code"] == 143


def test_a_stopped_podman_is_left_at_the_deadline(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    found = pids(user, "system service")
    kill(found, signal.SIGSTOP)
    try:
        assert agent.call("ctr.inspect", id=ws, deadline_s=1).code == "timeout"
        assert says(agent, ws) == "alive\n", "an exec does not need it"
    finally:
        kill(found, signal.SIGCONT)
    assert agent.call("ctr.inspect", id=ws).data["status"] == "running"


def test_a_container_killed_from_outside_is_seen(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    kill([agent.call("ctr.inspect", id=ws).data["pid"]])
    time.sleep(0.3)
    seen = agent.call("ctr.inspect", id=ws).data
    assert (seen["status"], seen["exit_code"]) == ("stopped", 137)
    answer = agent.call("ctr.exec", id=ws, command=["true"], timeout_s=5)
    assert answer.code == "not_running"
    assert agent.call("ctr.start", id=ws).data


def test_a_killed_pause_process_is_made_again(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    kill(pids(user, "catatonit -P"))
    assert says(agent, ws) == "alive\n"
    other = user.start_agent()
    assert says(other, ws) == "alive\n"
    assert other.call("ctr.stop", id=ws, grace_s=5).data["exit_code"] == 143
    assert other.call("ctr.start", id=ws).data
    assert other.close() == 0


def test_a_container_whose_conmon_died_with_it_is_seen_to_have_ended(
    user: User, agent: Agent, make: Make
) -> None:
    ws, other = make(), make()
    for workspace_id in (ws, other):
        found = agent.call("ctr.inspect", id=workspace_id).data
        kill([*pids(user, f"-c {found['container_id']}"), found["pid"]])
    time.sleep(0.2)
    rows = {row["id"]: row for row in agent.call("ctr.list").data["containers"]}
    assert (rows[ws]["status"], rows[ws]["exit_code"]) == ("stopped", 137)
    assert agent.call("ctr.inspect", id=ws).data["status"] == "stopped"
    for workspace_id in (ws, other):
        assert agent.call("ctr.start", id=workspace_id).data["pid"]
        assert says(agent, workspace_id) == "alive\n"


def test_after_everything_was_killed_the_next_agent_mends_it(user: User, agent: Agent, make: Make) -> None:
    ws = make()
    container = [agent.call("ctr.inspect", id=ws).data["pid"]]
    rest = [pid for pid in user.processes() if pid not in (agent.pid(), *container)]
    kill(rest + container)
    other = user.start_agent()
    assert other.call("ctr.inspect", id=ws).data["status"] == "stopped"
    assert other.call("ctr.start", id=ws).data
    assert says(other, ws) == "alive\n"
    assert other.close() == 0
    assert agent.call("ctr.inspect", id=ws).data["status"] == "running"
