"""`svc ws monitor`: for people, for programs, as JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

GET = "GET /api/workspaces/demo/monitor"


def snapshot(**more: Any) -> dict[str, Any]:
    """One look as the API tells of it."""
    return {
        "at": "2025-01-02T03:04:05Z", "source": "cgroup", "cpu_percent": 12.5, "sampled_ms": 100,
        "cpu_limit": 1.5, "memory_bytes": 2**20, "memory_limit_bytes": None, "pids": 2, "pids_limit": 64,
        "gpus": [
            {"uuid": "GPU-0", "model": "H100", "vram_bytes": 2**30, "used_bytes": 2**20,
             "utilization_percent": 80, "processes": [{"pid": 11, "used_bytes": None}]}
        ],
        "processes": [
            {"pid": 7, "parent": 1, "command": "sh -c \t\x1b[2J", "cpu_percent": 12.5, "memory_bytes": 4096}
        ],
        "more_processes": 3,
    } | more  # fmt: skip


def test_in_a_pipe(service: Service, svc: Svc) -> None:
    service.answer(GET, snapshot())
    assert svc("ws", "monitor", "demo").out.splitlines() == [
        "at\t2025-01-02T03:04:05Z", "source\tcgroup", "cpu_percent\t12.5", "sampled_ms\t100",
        "cpu_limit\t1.5", "memory_bytes\t1048576", "memory_limit_bytes\t", "pids\t2", "pids_limit\t64",
        "gpu\tGPU-0\tH100\t80\t1048576\t1073741824\t11",
        "process\t7\t1\t12.5\t4096\tsh -c \\t\\x1b[2J",
        "more_processes\t3",
    ]  # fmt: skip


def test_on_a_terminal(service: Service, svc: Svc) -> None:
    service.answer(GET, snapshot())
    out = svc("ws", "monitor", "demo", terminal=True).out
    assert out.splitlines()[:3] == [
        "CPU:        12.5 % of 1.5 cores", "Memory:     1.0 MiB, no limit", "Processes:  2 of 64",
    ]  # fmt: skip
    assert "GPU-0" in out
    assert "1.0 GiB" in out
    assert out.endswith("and 3 more\n")
    assert "\x1b" not in out


def test_without_gpus(service: Service, svc: Svc) -> None:
    service.answer(GET, snapshot(gpus=[], processes=[], more_processes=0))
    out = svc("ws", "monitor", "demo", terminal=True).out
    assert "GPU" not in out
    assert out.endswith("No processes.\n")


def test_json(service: Service, svc: Svc) -> None:
    service.answer(GET, snapshot())
    assert json.loads(svc("ws", "monitor", "demo", "--json").out) == snapshot()


@pytest.mark.parametrize("answer", [{}, {"gpus": 5, "processes": [1]}, {"gpus": [{}], "processes": [{}]}])
@pytest.mark.parametrize("terminal", [True, False])
def test_an_odd_answer_steers_nothing(service: Service, svc: Svc, answer: Any, terminal: bool) -> None:
    service.answer(GET, answer)
    assert svc("ws", "monitor", "demo", terminal=terminal).code == 0
