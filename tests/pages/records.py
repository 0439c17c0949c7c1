"""Records as the API gives them: those that the mock-up of the workspaces screen shows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

GIB = 1 << 30
SESSION = {
    "session": {"id": "s-1", "address": "192.0.2.7", "browser": "Chromium on Linux"},
    "user": {"name": "ada", "display_name": "", "superuser": False},
    "attention": {"tokens_expiring": 1, "reviews_waiting": 0, "gpus_lost": 0, "operations_failed": 0},
    "events_after": 0,
}
VERSION = {"version": "0.1.0", "commit": "cbb2249f00", "api": "1", "schema": 30}
ACTIONS = {
    "stopped": ["start", "edit", "upgrade", "rename", "logs", "delete"],
    "running": ["stop", "restart", "exec", "rename", "logs", "delete"],
    "failed": ["start", "stop", "edit", "upgrade", "rename", "logs", "delete"],
    "starting": ["rename", "logs"],
}
UUIDS = [f"GPU-{number}c1f6d3e-5b0a-4c1d-9e77-0f2c6ab18c1f" for number in range(8)]


def ago(**amount: float) -> str:
    """A time so long ago."""
    return (datetime.now(UTC) - timedelta(**amount)).isoformat().replace("+00:00", "Z")


def workspace(name: str, status: str = "stopped", **more: Any) -> dict[str, Any]:
    """The record of a workspace."""
    resources = {
        "cpu_limit": 4,
        "memory_bytes": 16 * GIB,
        "shm_bytes": None,
        "pids_limit": 4096,
        "gpu_count": 0,
        "gpu_mode": "exclusive",
    }
    record: dict[str, Any] = {
        "id": f"ws-{name}",
        "name": name,
        "display_name": "",
        "owner": "ada",
        "status": status,
        "template": {"id": "tpl-1", "name": "torch", "revision": 4, "newer_revision": None},
        "image": {"ref": "docker.io/team/torch:1", "digest": None},
        "image_status": "ready",
        "newer_image": False,
        "status_reason": "user_requested",
        "status_since": ago(hours=1),
        "health": "ok",
        "last_error": None,
        "operation": None,
        "allowed_actions": ACTIONS[status],
        "gpus": [],
        "limits_missing": [],
        "warnings": [],
        "mounts": [],
        "env": [],
        "launchers": [],
        "ports": [],
        "command": None,
        "network": None,
        "restart_on_boot": False,
        "exit_code": None,
        "idle": {"since": None, "keep_until": None, "action": "none", "after_minutes": None},
        "created_at": ago(days=9),
        "updated_at": ago(hours=1),
        "started_at": ago(hours=1),
        "stopped_at": ago(hours=1),
    }
    record["resources"] = resources | more.pop("resources", {})
    record["template"] |= more.pop("template", {})
    return record | more


def size(cpus: float, gib: int, gpus: int = 0, mode: str = "exclusive") -> dict[str, Any]:
    """Resources of a workspace."""
    return {"cpu_limit": cpus, "memory_bytes": gib * GIB, "gpu_count": gpus, "gpu_mode": mode}


def gpus(*numbers: int, mode: str = "exclusive") -> list[dict[str, str]]:
    """Leased GPUs."""
    return [{"uuid": UUIDS[number], "mode": mode} for number in numbers]


def of_the_mock_up() -> list[dict[str, Any]]:
    """The seven workspaces of the mock-up but the one whose image is pulled."""
    stop = {"since": ago(minutes=98), "keep_until": None, "action": "stop", "after_minutes": 120}
    return [
        workspace(
            "cuda-samples",
            "failed",
            template={"name": "my-torch", "revision": 2},
            resources=size(16, 128, 2),
            status_reason="engine_error",
            stopped_at=ago(days=2),
        ),
        workspace(
            "label-tool", "running", template={"name": "debian-tools", "revision": 2}, started_at=ago(days=6)
        ),
        workspace(
            "notebook",
            "running",
            template={"name": "jupyter", "revision": 7},
            resources=size(8, 64, 1, "shared"),
            gpus=gpus(4, mode="shared"),
            idle=stop,
        ),
        workspace(
            "paper-figures",
            template={"name": "jupyter", "revision": 6, "newer_revision": 7},
            status_reason="host_reboot",
            stopped_at=ago(days=1),
        ),
        workspace(
            "train-7b",
            "running",
            resources=size(32, 256, 2),
            gpus=gpus(0, 1),
            started_at=ago(hours=3, minutes=12),
        ),
        workspace(
            "vllm-serve",
            template={"name": "vllm", "revision": 3},
            resources=size(16, 96, 1),
            status_reason="oom_killed",
            stopped_at=ago(minutes=14),
        ),
    ]


SETUP = {
    "id": "op-k3f81c0z",
    "kind": "setup",
    "status": "running",
    "phase": "pulling",
    "error": None,
    "result": None,
    "progress": {
        "current": int(5.2 * GIB),
        "total": int(8.4 * GIB),
        "unit": "bytes",
        "rate": 10**8,
        "seconds_left": 30,
    },
    "subject": {"type": "workspace", "id": "ws-eval-harness", "name": "eval-harness"},
    "template": {"id": "tpl-2", "name": "vllm"},
    "created_at": ago(minutes=1),
    "updated_at": ago(seconds=2),
    "finished_at": None,
}


def live() -> dict[str, Any]:
    """What runs in the workspaces."""

    def one(name: str, launcher: str, state: str) -> dict[str, Any]:
        return {
            "id": f"ws-{name}",
            "at": ago(seconds=1),
            "launchers": [{"name": launcher, "state": state, "exit_code": 1 if state == "exited" else None}],
        }

    return {
        "items": [
            one("train-7b", "tensorboard", "started"),
            one("notebook", "jupyter", "started"),
            one("label-tool", "label-studio", "exited"),
        ]
    }


def page(items: list[dict[str, Any]]) -> dict[str, Any]:
    """A list as the API gives it."""
    return {"items": items, "total": len(items), "limit": 200, "offset": 0, "next_offset": None}


def holder(owner: str, workspace: str | None = None, *, outside: bool = False) -> dict[str, Any]:
    """Who holds a GPU."""
    return {
        "owner": owner,
        "workspace": workspace,
        "workspace_id": None,
        "since": ago(hours=1),
        "outside": outside,
        "mine": owner == "ada",
    }


def capacity() -> dict[str, Any]:
    """The headroom of the mock-up."""
    held: list[tuple[str, str | None, list[dict[str, Any]]]] = [
        ("leased", "exclusive", [holder("ada", "train-7b")]),
        ("leased", "exclusive", [holder("ada", "train-7b")]),
        ("leased", "exclusive", [holder("emmy")]),
        ("leased", "exclusive", [holder("emmy")]),
        ("shared", "shared", [holder("ada", "notebook"), holder("katherine")]),
        ("busy", None, [holder("hedy", outside=True)]),
        ("free", None, []),
        ("free", None, []),
    ]
    return {
        "quota": {
            "name": "lab",
            "max_workspaces": 20,
            "max_running": 4,
            "max_gpus": 4,
            "max_cpu": 64,
            "max_memory_bytes": 512 * GIB,
            "max_image_bytes": None,
        },
        "used": {
            "workspaces": 7,
            "running": 3,
            "gpus": 3,
            "cpu": 44,
            "memory_bytes": 336 * GIB,
            "image_bytes": 0,
        },
        "remaining": {
            "workspaces": 13,
            "running": 1,
            "gpus": 1,
            "cpu": 20,
            "memory_bytes": 176 * GIB,
            "image_bytes": None,
        },
        "host": {"cpus": 128, "memory_bytes": 1024 * GIB, "gpus": 8, "gpus_free": 2},
        "gpus": [
            {
                "index": index,
                "uuid": UUIDS[index],
                "model": "NVIDIA H100 80GB HBM3",
                "vram_bytes": 80 * GIB,
                "used_bytes": 0,
                "use_percent": 0,
                "state": state,
                "mode": mode,
                "holders": holders,
                "processes": [],
            }
            for index, (state, mode, holders) in enumerate(held)
        ],
    }


def everything() -> dict[str, Any]:
    """The answers of the mock-up's service."""
    return {
        "GET /api/health": {"status": "ok", "db": "ok", "helper": "ok", "license": "ok"},
        "GET /api/version": VERSION,
        "GET /api/auth/session": SESSION,
        "POST /api/auth/login": {
            "session_secret": "canned",
            **{key: SESSION[key] for key in ("session", "user")},
        },
        "POST /api/auth/logout": (204, None, {}),
        "GET /api/workspaces": page(of_the_mock_up()),
        "GET /api/workspaces/capacity": capacity(),
        "GET /api/usage/workspaces": live(),
        "GET /api/operations": page([SETUP]),
    }
