"""The first moments after a start: what has ended by then, and why."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable

import pytest
from agent.priv_ns import Agent

from svc_helper.agent.containers import starts

pytestmark = pytest.mark.root
Make = Callable[..., str]


def test_one_that_ends_right_after_its_start(agent: Agent, make: Make) -> None:
    """Its exit code, and what this run has printed; nothing of a run before."""
    for command, code, output in (
        (["sh", "-c", "test -e /tmp/again || echo out; touch /tmp/again; exit 3"], 3, "out\n"),
        (["true"], 0, ""),
    ):
        ws = make(start=False, command=command)
        ended = agent.call("ctr.start", id=ws).data["ended"]
        assert (ended["exit_code"], ended["oom_killed"], ended["code"]) == (code, False, None)
        assert ended["output"] == output
        assert agent.call("ctr.start", id=ws).data["ended"]["output"] == ""


@pytest.mark.parametrize("run_as", [None, {"uid": 1234, "gid": 1234}])
def test_a_command_that_cannot_be_run(agent: Agent, make: Make, run_as: dict[str, int] | None) -> None:
    """Catatonit says why, in the output; that is read also of a container with ids of its own."""
    ws = make(start=False, command=["/no/such/program"], run_as=run_as)
    ended = agent.call("ctr.start", id=ws).data["ended"]
    assert (ended["exit_code"], ended["code"]) == (1, "command_not_found")
    assert ended["output"] == "ERROR (catatonit:2): failed to exec pid1: No such file or directory\n"


def test_what_is_busy() -> None:
    """A start waits longer for a command that computes, and no longer for one that waits."""
    assert starts._is_busy(os.getpid())
    with subprocess.Popen(["sleep", "4271"]) as waiting:
        try:
            deadline = time.monotonic() + 10
            while starts._is_busy(waiting.pid) and time.monotonic() < deadline:
                time.sleep(0.01)
            assert not starts._is_busy(waiting.pid)
        finally:
            waiting.kill()
    assert not starts._is_busy(waiting.pid), "it has gone"
