"""Live monitors: shared samples, slow agents, the end of a workspace."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from unit.streaming import CALLER, start, until

from svc.domain.workspaces import monitor
from svc.errors import EngineUnavailable, InvalidRequest, WorkspaceNotRunning
from svc.web.streaming import loop as loops
from svc.web.streaming import monitors
from svc.web.streaming.monitors import Monitor


class Agent:
    """Answers with a number, or with what a test sets."""

    def __init__(self) -> None:
        self.count = 0
        self.errors: list[Exception] = []
        self.waiting = threading.Event()
        self.waiting.set()
        self.asked: list[str] = []

    def snapshot(self, _caller: Any, workspace_id: str) -> dict[str, Any]:
        self.asked.append(workspace_id)
        assert self.waiting.wait(20)
        if self.errors:
            raise self.errors.pop(0)
        self.count += 1
        return {"sample": self.count}


@pytest.fixture
def agent(default_loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    agent = Agent()
    monkeypatch.setattr(monitor, "snapshot", agent.snapshot)
    monkeypatch.setattr(monitors, "MONITOR_PERIOD_S", 0.02)
    monkeypatch.setattr(monitors, "_samplers", {})
    monkeypatch.setattr(monitors, "_asking", Counter())
    yield agent
    agent.waiting.set()
    until(lambda: not monitors._samplers and not +monitors._asking)


class Watcher:
    """A client."""

    def __init__(self, workspace_id: str = "ws-1") -> None:
        self.stream = Monitor(CALLER, lambda: None, "req-1", workspace_id)
        self.sock, self.over = start(self.stream, head=b"")
        self.buffer = b""

    def next(self) -> tuple[str, Any]:
        while b"\n\n" not in self.buffer:
            part = self.sock.recv(65536)
            assert part, "it has ended"
            self.buffer += part
        block, _, self.buffer = self.buffer.partition(b"\n\n")
        name, data = block.decode().split("\n")
        return name.removeprefix("event: "), json.loads(data.removeprefix("data: "))

    def close(self) -> None:
        self.sock.close()
        assert self.over.wait(20)


def test_samples_are_shared(agent: Agent) -> None:
    first, second = Watcher(), Watcher()
    seen = [[watcher.next()[1]["sample"] for _ in range(5)] for watcher in (first, second)]
    for numbers in seen:
        assert numbers == list(range(numbers[0], numbers[0] + 5))
    assert len(monitors._samplers) == 1
    assert len(agent.asked) - agent.count in (0, 1)  # one at a time
    first.close()
    assert second.next()[0] == "sample"  # asked as the other from now on
    second.close()


def test_each_workspace_has_its_own(agent: Agent) -> None:
    first, second = Watcher("ws-1"), Watcher("ws-2")
    assert (first.next()[0], second.next()[0]) == ("sample", "sample")
    assert set(agent.asked) == {"ws-1", "ws-2"}
    first.close()
    second.close()


def test_the_end_of_the_workspace_ends_it(agent: Agent) -> None:
    watcher = Watcher()
    watcher.next()
    agent.errors.append(WorkspaceNotRunning("stopped"))
    until(lambda: not agent.errors)
    while (last := watcher.next())[0] == "sample":
        pass
    assert last == ("end", {})
    watcher.close()


def test_a_moment_without_the_engine_ends_nothing_and_an_error_does(agent: Agent) -> None:
    watcher = Watcher()
    watcher.next()
    agent.errors += [EngineUnavailable("restarting")] * 2
    until(lambda: not agent.errors)
    number = watcher.next()[1]["sample"]
    assert watcher.next()[1]["sample"] == number + 1
    agent.errors.append(InvalidRequest("no"))
    while (last := watcher.next())[0] == "sample":
        pass
    assert last[1]["error"]["code"] == "invalid_request"
    watcher.close()


def test_an_agent_that_does_not_answer_holds_few_threads(agent: Agent) -> None:
    agent.waiting.clear()
    watchers = [Watcher(f"ws-{number}") for number in range(6)]
    until(lambda: len(agent.asked) == monitors.SAMPLES_PER_USER)
    until(lambda: len(monitors._samplers) == 6)
    assert monitors._asking[CALLER.user_id] == monitors.SAMPLES_PER_USER
    agent.waiting.set()
    for watcher in watchers:
        assert watcher.next()[0] == "sample"
        watcher.close()


def test_a_client_that_comes_back_at_once_begins_no_second_row_of_samples(agent: Agent) -> None:
    for _ in range(20):
        Watcher().close()
    watcher = Watcher()
    numbers = [watcher.next()[1]["sample"] for _ in range(10)]
    assert numbers == list(range(numbers[0], numbers[0] + 10))
    watcher.close()
