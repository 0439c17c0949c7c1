"""Answers of the composer's API: the templates, recommendations and checks that the mock-up shows."""

from __future__ import annotations

from typing import Any

from pages import records
from pages.canned import Canned
from pages.records import GIB, UUIDS, ago, page

CHECK, RECOMMEND, SETUP = (f"POST /api/workspaces/{name}" for name in ("check", "recommend", "setup"))


def template(name: str, **more: Any) -> dict[str, Any]:
    """The record of a template."""
    record: dict[str, Any] = {
        "id": f"tpl-{name}",
        "name": name,
        "description": "",
        "scope": "global",
        "owner": None,
        "status": "enabled",
        "source": {
            "type": "registry",
            "image_ref": f"docker.io/team/{name}:1",
            "local_only": False,
            "has_dockerfile": False,
            "context_files": 0,
            "context_bytes": 0,
        },
        "managed": False,
        "cloned_from": None,
        "revision": 3,
        "reviewed_revision": 3,
        "findings": [],
        "defaults": {},
        "limits": {},
        "gpu": {},
        "command": None,
        "run_as": None,
        "env": [],
        "launchers": [],
        "ports": [],
        "mounts": [],
        "idle": {},
        "created_at": ago(days=30),
        "updated_at": ago(days=3),
    }
    return record | more


def templates() -> list[dict[str, Any]]:
    """Those of the mock-up."""
    return [
        template("torch", description="PyTorch 2.6, CUDA 12.6, tensorboard"),
        template(
            "vllm",
            description="OpenAI-compatible server for open models",
            gpu={"min_vram_bytes": 40 * GIB},
            defaults={
                "gpu_count": 1, "shm_bytes": 16 * GIB, "env": [{"name": "HF_HOME", "value": "/work/hf"}],
            },
            limits={"cpu_limit": 32.0, "memory_bytes": 256 * GIB},
            ports=[{"name": "api", "container_port": 8000}],
            launchers=[
                {
                    "name": "serve", "title": "", "command": ["vllm"], "env": [], "port": "api",
                    "autostart": True,
                }
            ],
            mounts=[{"root": "data", "path": "/data", "read_only": True}],
            idle={"action": "stop", "after_minutes": 120},
        ),
        template(
            "jupyter", description="Notebook with PyTorch; may share a GPU", gpu={"allow_shared": True}
        ),
        template("debian-tools"),
        template("rstudio", scope="private", owner="ada"),
        template("eval", source=template("x")["source"] | {"type": "dockerfile"}),
        template("off", status="disabled"),
    ]  # fmt: skip


def image(name: str, status: str = "ready", **more: Any) -> dict[str, Any]:
    """The image of a template in one's own store."""
    return {
        "template": {"id": f"tpl-{name}", "name": name},
        "ref": f"docker.io/team/{name}:1",
        "status": status,
        "digest": None,
        "size_bytes": 4 * GIB if status == "ready" else None,
        "error": None,
        "used_by": [],
        "operation": None,
        "updated_at": None,
    } | more


def images() -> list[dict[str, Any]]:
    """All but two are there."""
    missing = ("vllm", "eval")
    return [
        image(one["name"], "missing" if one["name"] in missing else "ready")
        for one in templates()
        if one["name"] != "off"
    ]


def size(cpus: float, gib: int, gpus: int, mode: str = "exclusive", shm: int | None = None) -> dict[str, Any]:
    """Resources as a recommendation has them."""
    return {
        "cpu_limit": cpus,
        "memory_bytes": gib * GIB,
        "shm_bytes": None if shm is None else shm * GIB,
        "pids_limit": None,
        "gpu_count": gpus,
        "gpu_mode": mode,
    }


LEVELS = {
    "none": size(8, 64, 0),
    "light": size(16, 125, 1, shm=16),
    "standard": size(16, 125, 1, shm=16),
    "heavy": size(16, 125, 1, shm=16),
    "max": size(20, 176, 2, shm=44),
}


def recommendation(level: str = "standard") -> dict[str, Any]:
    """What is recommended at each level."""
    found = [
        {"gpu_use_case": name, "resources": resources, "allocatable_now": name != "max"}
        for name, resources in LEVELS.items()
    ]
    return {
        **next(one for one in found if one["gpu_use_case"] == level),
        "template": {"id": "tpl-vllm", "name": "vllm"},
        "blocked_by": None,
        "message": None,
        "hint": None,
        "action": None,
        "alternatives": [one for one in found if one["gpu_use_case"] != level],
        "command": "svc ws create --template vllm --name vllm-1",
    }


def checked(*blocks: dict[str, Any], gpus: tuple[int, ...] = (6,), **more: Any) -> dict[str, Any]:
    """The check of a request."""
    headroom = records.capacity()
    return {
        "allocatable_now": not blocks,
        "blocked_by": list(blocks),
        "template": {"id": "tpl-vllm", "name": "vllm"},
        "resources": LEVELS["standard"],
        "image_status": "missing",
        "gpus": [{"index": index, "uuid": UUIDS[index], "model": "NVIDIA H100"} for index in gpus],
        "quota": headroom["quota"],
        "used": headroom["used"],
        "after": headroom["used"],
        "remaining": headroom["remaining"],
    } | more


OVER = {
    "code": "quota_exceeded",
    "message": "your quota (lab) has 4 GPUs, 3 taken; vllm-1 needs 2 more",
    "hint": "svc ws stop train-7b",
    "action": {
        "label": "Stop train-7b",
        "method": "POST",
        "path": "/api/workspaces/train-7b/stop",
        "body": {},
    },
}


def preflight(**more: Any) -> dict[str, Any]:
    """What a pull of vllm would load."""
    return {
        "verb": "pull",
        "ref": "docker.io/team/vllm:1",
        "images": ["docker.io/team/vllm:1"],
        "download_bytes": int(8.4 * GIB),
        "present_bytes": int(3.1 * GIB),
        "needed_bytes": int(16.8 * GIB),
        "free_bytes": 412 * GIB,
        "used_bytes": int(38.6 * GIB),
        "quota_bytes": 120 * GIB,
        "fits": True,
        "blocked_by": None,
        "message": None,
        "hint": None,
        "action": None,
    } | more


def operation(**more: Any) -> dict[str, Any]:
    """A set-up that has begun."""
    return (
        records.SETUP
        | {
            "id": "op-9d2mx41r",
            "status": "queued",
            "phase": "",
            "progress": {},
            "subject": {"type": "workspace", "id": "ws-9d2mx41r", "name": "vllm-1"},
            "template": {"id": "tpl-vllm", "name": "vllm"},
        }
        | more
    )


PULLING = {
    "status": "running",
    "phase": "pulling",
    "progress": {
        "current": int(5.25 * GIB),
        "total": int(8.4 * GIB),
        "unit": "bytes",
        "rate": 112 << 20,
        "seconds_left": 30,
    },
}


def serve(canned: Canned) -> None:
    """The answers of the composer's service."""
    canned.answers |= {
        "GET /api/templates": page(templates()),
        "GET /api/images": page(images()),
        "GET /api/operations": page([]),
        "GET /api/templates/tpl-vllm/image/preflight": preflight(),
        "GET /api/templates/tpl-eval/image/preflight": preflight(verb="build"),
        RECOMMEND: recommendation(),
        CHECK: checked(),
        SETUP: (202, {"operation": operation()}, {}),
        "GET /api/operations/op-9d2mx41r": operation(**PULLING),
    }
