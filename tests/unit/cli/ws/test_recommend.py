"""`svc ws recommend`: the levels are the parser's, all else is the server's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

POST = "POST /api/workspaces/recommend"
RESOURCES = {
    "cpu_limit": 8.0, "memory_bytes": 2**36, "shm_bytes": 2**34, "pids_limit": None, "gpu_count": 1,
    "gpu_mode": "shared",
}  # fmt: skip
COMMAND = "svc ws create --template torch --name torch-1 --cpus 8 --memory 64g --gpu-count 1"
FOUND: dict[str, Any] = {
    "template": {"id": "tpl-1", "name": "torch"},
    "gpu_use_case": "light",
    "resources": RESOURCES,
    "allocatable_now": False,
    "blocked_by": "gpu_busy",
    "message": "1 GPU of 2 needed, and none free",
    "hint": "svc ws capacity",
    "alternatives": [
        {"gpu_use_case": "none", "resources": RESOURCES | {"gpu_count": 0}, "allocatable_now": True},
        {"gpu_use_case": "max", "resources": RESOURCES, "allocatable_now": False},
    ],
    "command": COMMAND,
}


def test_only_what_is_set_is_sent(service: Service, svc: Svc) -> None:
    service.answer(POST, FOUND)
    assert svc("ws", "recommend", "--template", "torch").code == 0
    assert service.last.json == {"template": "torch"}
    assert svc("ws", "recommend", "--template", "torch", "--gpu-use-case", "heavy").code == 0
    assert service.last.json == {"template": "torch", "gpu_use_case": "heavy"}


def test_for_people(service: Service, svc: Svc) -> None:
    service.answer(POST, FOUND)
    lines = svc("ws", "recommend", "--template", "torch", terminal=True).out.splitlines()
    said = dict(line.split(":", 1) for line in lines)
    assert said["Memory"].strip() == "64.0 GiB"
    assert said["Possible now"].strip() == "no"
    assert said["Blocked by"].strip() == "gpu_busy"
    assert said["Reason"].strip() == "1 GPU of 2 needed, and none free"
    assert said["Hint"].strip() == "svc ws capacity"
    assert said["Alternatives"].strip() == "none (0 GPUs), max (1 GPU, not now)"
    assert said["Command"].strip() == COMMAND
    assert "PIDs" not in said  # the template's


def test_a_host_without_gpus(service: Service, svc: Svc) -> None:
    none = RESOURCES | {"gpu_count": 0}
    other = {"gpu_use_case": "max", "resources": none, "allocatable_now": False}
    blocked = {"resources": none, "alternatives": [FOUND["alternatives"][0], other], "blocked_by": "no_gpu"}
    free = {"resources": none, "gpu_use_case": "none", "blocked_by": None}
    service.answer(POST, FOUND | blocked, FOUND | free)
    said = svc("ws", "recommend", "--template", "torch", "--gpu-use-case", "light", terminal=True).out
    assert "none (0 GPUs), max (not possible)\n" in said
    assert "Command" not in said  # it would have no GPU
    said = svc("ws", "recommend", "--template", "torch", "--gpu-use-case", "none", terminal=True).out
    assert COMMAND in said and "Blocked by" not in said


def test_for_programs(service: Service, svc: Svc) -> None:
    service.answer(POST, FOUND)
    out = svc("ws", "recommend", "--template", "torch").out
    said = dict(line.split("\t") for line in out.splitlines())
    assert (said["gpus"], said["memory"], said["blocked_by"]) == ("1", str(2**36), "gpu_busy")
    assert said["command"] == COMMAND
    assert svc("ws", "recommend", "--template", "torch", "--json").out == json.dumps(FOUND) + "\n"


@pytest.mark.parametrize(
    "rest", ["", "--gpu-use-case light", "--template a/b", "--template x --gpu-use-case", "--template x y"]
)
def test_wrong_usage(service: Service, svc: Svc, rest: str) -> None:
    assert svc("ws", "recommend", *rest.split()).code == 2
    assert service.sent == []


def test_a_level_that_there_is_not(service: Service, svc: Svc) -> None:
    done = svc("ws", "recommend", "--template", "x", "--gpu-use-case", "all")
    assert (done.code, service.sent) == (2, [])
    assert "'all' is none of none, light, standard, heavy, max" in done.err


@pytest.mark.parametrize("answer", [{}, {"alternatives": [5, {}], "resources": 5}, {"alternatives": "x"}])
def test_an_answer_that_makes_no_sense(service: Service, svc: Svc, answer: Any) -> None:
    service.answer(POST, answer)
    assert svc("ws", "recommend", "--template", "x", terminal=True).code == 0
