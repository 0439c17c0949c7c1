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
    assert starts._times(os.getpid()) is None
    with subprocess.Popen(["sleep", "4271"]) as waiting:
        try:
            assert idle_by(waiting.pid, time.monotonic() + 20)
        finally:
            waiting.kill()
    assert starts._times(waiting.pid) is None, "it has gone"


def test_a_script_is_as_busy_as_the_program_that_it_waits_for() -> None:
    """The start looked at children only, of which this one only waits."""
    script = "(sh -c 'while :; do :; done'; true) & wait"
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as waiting:
        try:
            deadline = time.monotonic() + 20
            while len(starts._children(waiting.pid)) != 1:
                assert time.monotonic() < deadline
            assert not idle_by(waiting.pid, time.monotonic() + 0.2)
        finally:
            os.killpg(waiting.pid, 9)


def idle_by(pid: int, deadline: float) -> bool:
    """Whether it is found idle between two looks by then."""
    before = None
    while time.monotonic() < deadline:
        now = starts._times(pid)
        if starts._is_idle(before, now):
            return True
        before = now
        time.sleep(0.008)
    return False


def test_hardly_any_processor_time_is_none() -> None:
    """A server with a timer waits all the same; another process is not the same."""
    assert starts._is_idle({1: 100, 2: 5}, {1: 300, 2: 5})
    assert not starts._is_idle({1: 100, 2: 5}, {1: 100, 2: 5000})
    assert not starts._is_idle({1: 100}, {1: 100, 2: 0})
    assert not starts._is_idle(None, {1: 100})
    assert not starts._is_idle({1: 100}, None)
