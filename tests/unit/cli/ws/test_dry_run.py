"""`svc ws create --dry-run`."""

from __future__ import annotations

import json
from typing import Any

from fake_service import Service, Svc

POST = "POST /api/workspaces/check"
LINE = ("ws", "create", "--template", "torch", "--name", "train", "--gpu-count", "1", "--dry-run")
FOUND: dict[str, Any] = {
    "allocatable_now": True,
    "blocked_by": [],
    "template": {"id": "tpl-1", "name": "torch"},
    "resources": {"cpu_limit": 8.0, "memory_bytes": 2**36, "gpu_count": 1, "gpu_mode": "exclusive"},
    "image_status": "ready",
    "gpus": [{"index": 3, "uuid": "GPU-3", "model": "NVIDIA H100"}],
    "remaining": {"cpu": 2.5, "gpus": None, "memory_bytes": 2**30},
}
BLOCKS = [
    {"code": "quota_exceeded", "message": "too much\x1b[2J", "hint": "svc ws stop lab"},
    {"code": "license_required", "message": "no licence", "hint": ""},
]


def test_what_is_possible(service: Service, svc: Svc) -> None:
    service.answer(POST, FOUND)
    done = svc(*LINE)
    assert (done.code, done.err) == (0, "")
    assert service.last.json == {"name": "train", "template": "torch", "resources": {"gpu_count": 1}}
    said = dict(line.split("\t") for line in done.out.splitlines())
    assert (said["possible_now"], said["gpus"]) == ("true", "3: NVIDIA H100 (GPU-3)")
    assert said["memory_left"] == str(2**30)
    assert json.loads(svc(*LINE, "--json").out) == FOUND


def test_each_thing_in_the_way_has_its_line(service: Service, svc: Svc) -> None:
    service.answer(POST, FOUND | {"allocatable_now": False, "blocked_by": BLOCKS})
    done = svc(*LINE)
    assert done.code == 1
    assert done.err == "svc: too much\\x1b[2J\nhint: svc ws stop lab\nsvc: no licence\n"
    assert svc(*LINE, "--json").code == 1


def test_an_odd_answer_is_no(service: Service, svc: Svc) -> None:
    service.answer(POST, {"blocked_by": 7})
    assert svc(*LINE).code == 1
