"""The stop of a workspace with launchers: these end first, within the grace period."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from agent.containers.test_launchers import KIND, exited, start, state, text
from agent.priv_ns import Agent, wait_for

pytestmark = pytest.mark.root
Make = Callable[..., str]


def test_launchers_end_before_their_workspace(agent: Agent, make: Make) -> None:
    ws = make()
    for name in ("one", "two"):
        start(agent, ws, name, "sh", "-c", KIND)
        wait_for(lambda name=name: "ready" in text(agent, ws, name))
    start(agent, ws, "off", "sh", "-c", f"echo begun; (setsid sh -c '{KIND}' &)")
    wait_for(lambda: "ready" in text(agent, ws, "off"))
    exited(agent, ws, "off")
    assert agent.call("ctr.stop", id=ws, grace_s=60, deadline_s=100).data["exit_code"] is not None
    for name in ("one", "two", "off"):
        assert text(agent, ws, name).endswith("saved\n"), "with all the time that they needed"
    assert (state(agent, ws, "one")["state"], state(agent, ws, "one")["exit_code"]) == ("stopped", 0)
    assert state(agent, ws, "off")["state"] == "exited"


def test_a_stubborn_one_leaves_the_workspaces_own_command_its_term(agent: Agent, make: Make) -> None:
    ws = make(command=["sh", "-c", "trap 'exit 7' TERM; echo ready; while :; do sleep 0.05; done"])
    wait_for(lambda: "ready" in agent.logs(ws).text)
    start(agent, ws, "wild", "sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.05; done")
    wait_for(lambda: "ready" in text(agent, ws, "wild"))
    assert agent.call("ctr.stop", id=ws, grace_s=1, deadline_s=60).data["exit_code"] == 7
