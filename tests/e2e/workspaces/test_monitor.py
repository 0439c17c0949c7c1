"""`svc ws monitor` through the installed program: figures that are true."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from e2e.installation import Call, Service
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template
from waiting import until

BUSY = {"name": "busy", "command": ["sh", "-c", "while :; do :; done"]}
LARGE = {"name": "large", "command": ["sh", "-c", "head -c 64m /dev/zero | tail -n 1 | sleep 4716"]}
MIB = 1 << 20


@pytest.fixture(scope="module")
def template(service: Service, registry: str) -> str:
    """Alice's template with something to measure; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}
    new_template("tse-alice", service.env, "measured", source, launchers=[BUSY, LARGE])
    return "measured"


@pytest.fixture
def inspect(alice: Call, workspace: str) -> Iterator[Callable[[], dict[str, Any]]]:
    """look() -> the workspace as the monitor sees it."""
    yield lambda: dict(must(alice("ws", "monitor", workspace, "--json")).json())
    for name in ("busy", "large"):
        alice("ws", "launcher", "stop", workspace, name)


def test_processors(alice: Call, workspace: str, inspect: Callable[[], dict[str, Any]]) -> None:
    must(alice("ws", "launcher", "start", workspace, "busy"))
    # On a loaded machine its share is smaller: what counts is that it is told, by the process and in all.
    busy = until(lambda: [one for one in inspect()["processes"] if one["cpu_percent"] > 5], 30)[0]
    assert "while :" in busy["command"]
    assert os.stat(f"/proc/{busy['pid']}").st_uid == pwd.getpwnam("tse-alice").pw_uid
    assert until(lambda: inspect()["cpu_percent"] > 5, 30)
    must(alice("ws", "launcher", "stop", workspace, "busy"))
    until(lambda: inspect()["cpu_percent"] < 5, 30)


def test_memory_and_processes(alice: Call, workspace: str, inspect: Callable[[], dict[str, Any]]) -> None:
    before = inspect()
    must(alice("ws", "launcher", "start", workspace, "large"))
    until(lambda: inspect()["memory_bytes"] > before["memory_bytes"] + 48 * MIB, 30)
    during = inspect()
    assert during["pids"] > before["pids"] >= 1
    assert any(one["command"] == "sleep 4716" for one in during["processes"])
    must(alice("ws", "launcher", "stop", workspace, "large"))
    until(lambda: inspect()["memory_bytes"] < before["memory_bytes"] + 32 * MIB, 30)


def test_limits_in_force(alice: Call, template: str) -> None:
    """What the host does not apply, as `limits_missing` has it, is no limit of the snapshot either."""
    asked = ("--cpus", "0.5", "--memory", "64m", "--pids", "100")
    must(alice("ws", "setup", "--template", template, "--name", "limited", *asked))
    missing = must(alice("ws", "start", "limited", "--json")).json()["limits_missing"]
    found = must(alice("ws", "monitor", "limited", "--json")).json()
    for name, limit, value in (
        ("cpu_limit", "cpu_limit", 0.5),
        ("memory_bytes", "memory_limit_bytes", 64 * MIB),
        ("pids_limit", "pids_limit", 100),
    ):
        assert found[limit] == (None if name in missing else value), name
    must(alice("ws", "delete", "limited", "--yes"))


def test_for_programs_and_of_a_stopped_one(alice: Call, bob: Call, workspace: str) -> None:
    lines = [line.split("\t") for line in must(alice("ws", "monitor", workspace)).out.splitlines()]
    named = {line[0]: line[1:] for line in lines}
    assert int(named["memory_bytes"][0]) > 0
    assert any(line[0] == "process" and line[-1].startswith("sleep") for line in lines)
    assert bob("ws", "monitor", workspace).code == 1
    must(alice("ws", "stop", workspace))
    refused = alice("ws", "monitor", workspace)
    assert (refused.code, f"hint: svc ws start {workspace}\n" in refused.err) == (1, True)
