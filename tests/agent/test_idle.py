"""What the idle policy makes of real figures: quiet containers are quiet, busy ones are not."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from agent.priv_ns import Agent

from svc.domain.workspaces import idle
from svc.domain.workspaces.idle import Use

BETWEEN_S = 2.0


def inspect(agent: Agent, ws: str) -> Use:
    """As the worker counts it."""
    data = agent.call("ctr.stats", id=ws, sample_ms=0).data
    return Use(time.monotonic(), data["cpu_usec"], 0, 0)


@pytest.mark.parametrize(
    ("command", "quiet"),
    [
        (["sleep", "infinity"], True),
        (["sh", "-c", "while :; do :; done"], False),
        (["sh", "-c", "while :; do true $(true); done"], False),  # none of its processes lasts
    ],
)
def test_two_looks(agent: Agent, make: Callable[..., str], command: list[str], quiet: bool) -> None:
    ws = make(command=command)
    time.sleep(1)  # what a start costs is over
    before = inspect(agent, ws)
    time.sleep(BETWEEN_S)
    assert idle.is_quiet(before, inspect(agent, ws)) is quiet
