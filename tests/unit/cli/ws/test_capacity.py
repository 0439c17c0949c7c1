"""`svc ws capacity`: two tables, one below the other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

GET = "GET /api/workspaces/capacity"
KEYS = ("workspaces", "running", "gpus", "cpu", "memory_bytes", "image_bytes")
NONE = dict.fromkeys(KEYS)
FOUND: dict[str, Any] = {
    "quota": {"name": "small"} | {f"max_{key}": None for key in KEYS} | {"max_cpu": 4.0, "max_running": 2},
    "used": dict.fromkeys(KEYS, 0) | {"cpu": 1.5, "running": 1, "memory_bytes": 2**30},
    "remaining": NONE | {"cpu": 2.5, "running": 1},
    "host": {"cpus": 32, "memory_bytes": 2**38, "gpus": 2, "gpus_free": 0},
    "gpus": [],
}
GPU = {"model": "NVIDIA H100", "vram_bytes": 2**36}
MINE = {"owner": "ada", "workspace": "lab", "outside": False, "mine": True}
BOBS = {"owner": "bob", "workspace": None, "outside": False, "mine": False}
OTHER = {"owner": "eve", "workspace": None, "outside": True, "mine": False}
SINCE = "2025-01-02T03:04:05Z"
GPUS = [
    {"uuid": "GPU-1", "state": "shared", "mode": "shared", "holders": [MINE | {"since": SINCE}, BOBS]}
    | GPU
    | {"index": 0, "used_bytes": 2**34, "use_percent": 7},
    {"uuid": "GPU-2", "state": "busy", "mode": None, "holders": [OTHER]} | GPU | {"index": 1},
    {"uuid": "GPU-3", "state": "lost", "holders": [BOBS | {"workspace": "his"}], "index": None},
]


def test_for_people(service: Service, svc: Svc) -> None:
    service.answer(GET, FOUND | {"gpus": GPUS})
    out = svc("ws", "capacity", terminal=True).out
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["Your", "quota", "is", "small."]
    assert lines[1] == ["RESOURCE", "USED", "QUOTA", "LEFT", "HOST"]
    assert lines[3] == ["running", "1", "2", "1", "-"]
    assert lines[4] == ["gpus", "0", "unlimited", "unlimited", "2"]
    assert lines[5] == ["cpus", "1.5", "4", "2.5", "32"]
    assert lines[6] == ["memory", "1.0", "GiB", "unlimited", "unlimited", "256", "GiB"]
    assert lines[8:10] == [[], ["GPU", "MODEL", "MEMORY", "USE", "STATE", "HELD", "BY", "SINCE"]]
    assert lines[10][:9] == ["0", "NVIDIA", "H100", "16.0/64.0", "GiB", "7%", "shared", "lab,", "bob"]
    assert lines[11][:7] == ["1", "NVIDIA", "H100", "64.0", "GiB", "-", "busy"]
    assert "eve (outside svc)" in out.splitlines()[11]
    assert lines[12] == ["GPU-3", "-", "-", "-", "lost", "bob/his", "-"]


def test_for_programs(service: Service, svc: Svc) -> None:
    service.answer(GET, FOUND | {"gpus": GPUS})
    assert svc("ws", "capacity").out.splitlines() == [
        "workspaces\t0\t\t\t", "running\t1\t2\t1\t", "gpus\t0\t\t\t2", "cpus\t1.5\t4\t2.5\t32",
        "memory\t1073741824\t\t\t274877906944", "images\t0\t\t\t",
        f"GPU-1\tNVIDIA H100\t68719476736\tshared\tshared\tlab, bob\t0\t17179869184\t7\t{SINCE}",
        "GPU-2\tNVIDIA H100\t68719476736\tbusy\t\teve (outside svc)\t1\t\t\t",
        "GPU-3\t\t\tlost\t\tbob/his\t\t\t\t",
    ]  # fmt: skip
    assert json.loads(svc("ws", "capacity", "--json").out)["gpus"] == GPUS


def test_a_host_without_gpus(service: Service, svc: Svc) -> None:
    service.answer(GET, FOUND)
    assert svc("ws", "capacity", terminal=True).out.endswith("\n\nThis host has no GPUs.\n")
    assert len(svc("ws", "capacity").out.splitlines()) == 6


@pytest.mark.parametrize("answer", [{}, {"gpus": 5, "used": "x"}, {"gpus": [5, {"holders": [5, {}]}]}])
def test_an_answer_that_makes_no_sense(service: Service, svc: Svc, answer: Any) -> None:
    service.answer(GET, answer)
    assert svc("ws", "capacity", terminal=True).code == 0
    assert svc("ws", "capacity").code == 0
