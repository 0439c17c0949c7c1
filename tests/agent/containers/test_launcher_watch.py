"""The first moments of real launchers: what listens is not waited for, what has exited says why."""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from typing import Any

import pytest
from agent.containers.test_launchers import start
from agent.priv_ns import Agent

pytestmark = pytest.mark.root


def test_what_listens_what_exits_and_what_does_neither(agent: Agent, make: Callable[..., str]) -> None:
    ws = make()
    start(agent, ws, "web", "httpd", "-f", "-p", "127.0.0.1:8137", "-h", "/tmp")
    start(agent, ws, "dead", "sh", "-c", "echo no such module; exit 3")
    start(agent, ws, "daemon", "sleep", "4261")

    def watch(watch_ms: int, **ports: int | None) -> dict[str, dict[str, Any]]:
        asked = [{"name": name, "port": port} for name, port in ports.items()]
        rows = agent.call("launcher.watch", id=ws, launchers=asked, watch_ms=watch_ms).data["launchers"]
        assert [row["name"] for row in rows] == list(ports)
        return {row["name"]: row for row in rows}

    found = watch(5000, web=8137, dead=8138)  # dead is not waited for either
    assert (found["web"]["state"], found["dead"]["state"], found["dead"]["exit_code"]) == (
        "started",
        "exited",
        3,
    )
    assert found["dead"]["output"] == "no such module\n"
    assert "output" not in found["web"]
    assert (found["web"]["listens"], found["dead"]["listens"]) == (True, False)
    found = watch(0, daemon=None, none=None, web=9)
    assert [row["state"] for row in found.values()] == ["started", "stopped", "started"]
    assert [row["listens"] for row in found.values()] == [None, None, False]


def test_a_pidfd_tells_the_end(agent: Agent, make: Callable[..., str]) -> None:
    ws = make()
    start(agent, ws, "job", "sleep", "4262")
    watch = agent.call("launcher.watch_end", id=ws, name="job")
    (pidfd,) = watch.fds
    assert watch.data["started_at"]
    poller = select.poll()
    poller.register(pidfd, select.POLLIN)
    assert not poller.poll(0)
    agent.call("launcher.stop", id=ws, name="job", grace_s=0)
    assert poller.poll(30_000)
    os.close(pidfd)
    for name in ("job", "none"):
        assert agent.call("launcher.watch_end", id=ws, name=name).code == "not_running"
