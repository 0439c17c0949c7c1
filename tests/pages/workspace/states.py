"""The states of one workspace's pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pages import records as shared
from pages.canned import Canned
from pages.states import State
from pages.workspace import records

HOSTILE = "<img src=x onerror=alert(1)>\u202egnp.exe " + "W" * 160
RUNNING, STOPPED = "/workspaces/train-7b", "/workspaces/vllm-serve"


def _with(record: Callable[[], dict[str, Any]]) -> Callable[[Canned], None]:
    def prepare(canned: Canned) -> None:
        records.serve_all(canned, record())

    return prepare


def _failed(canned: Canned) -> None:
    records.serve_all(
        canned, records.vllm(status="failed", allowed_actions=shared.ACTIONS["failed"], **FAILURE)
    )


def _refused(canned: Canned) -> None:
    records.serve_all(canned, records.vllm())
    canned.refuse(
        "POST /api/workspaces/ws-vllm-serve/start", 409, "gpu_unavailable",
        "vllm-serve asks for 1 GPU and none is free", hint="svc ws stop notebook", retryable=True,
    )  # fmt: skip


def _failed_at_once(canned: Canned) -> None:
    records.serve_all(canned, records.vllm())
    canned.answers["POST /api/workspaces/ws-vllm-serve/start"] = records.failed_at_once(
        id="ws-vllm-serve", name="vllm-serve"
    )


def _without_gpus(canned: Canned) -> None:
    records.without_gpus(canned)
    record = records.vllm(env=ENV)
    record["resources"] |= {"gpu_count": 0}
    records.serve_all(canned, record)


def _history(canned: Canned) -> None:
    record = records.serve_all(canned)
    canned.answers["GET /api/audit"] = shared.page(
        [item | {"target": record["id"]} for item in records.HISTORY]
    )


def _unread(canned: Canned) -> None:
    canned.refuse("GET /api/workspaces/train-7b", 503, "unavailable", "the engine is away", retryable=True)


def _newer() -> dict[str, Any]:
    record = records.vllm(status_reason="host_reboot", exit_code=None)
    record["template"] |= {"newer_revision": 4}
    return record


FAILURE = {
    "status_reason": "engine_error",
    "last_error": {
        "code": "engine_failed",
        "message": "crun: cannot mount /work",
        "at": shared.ago(minutes=14),
    },
}
IDLE = {"since": shared.ago(minutes=98), "keep_until": None, "action": "stop", "after_minutes": 120}
WARNING = {
    "code": "image_user",
    "message": "the programs of this image run as jovyan (uid 1000, gid 100) and cannot open /work",
    "hint": "svc template edit torch --run-as 1000:100 && svc ws upgrade train-7b",
}
CREATING = {
    "operation": {
        "id": "op-1", "kind": "setup", "status": "running", "phase": "pulling",
        "progress": {"current": 5 * shared.GIB, "total": 8 * shared.GIB, "unit": "bytes", "seconds_left": 30},
    },
    "allowed_actions": ["rename"],
}  # fmt: skip
ENV = [{"name": "RUN", "value": "7b"}]
OFF = {"launchers": [], "ports": [], "env": []}

STATES: dict[str, State] = {
    "overview": State(RUNNING, "[data-body=happened] tr", _with(lambda: records.running())),
    "overview plain": State(RUNNING, "[data-body=last] pre", _with(lambda: records.running(**OFF))),
    "overview gpu lost": State(RUNNING, ".notice.danger", _with(lambda: records.running(health="gpu_lost"))),
    "overview idle": State(RUNNING, ".notice.warn", _with(lambda: records.running(idle=IDLE))),
    "overview warned": State(
        RUNNING, ".notice.warn", _with(lambda: records.running(warnings=[WARNING | {"message": HOSTILE}]))
    ),
    "overview hostile": State(
        RUNNING, "[data-body=happened] tr",
        _with(lambda: records.running(display_name=HOSTILE, env=[{"name": "A", "value": HOSTILE}])),
    ),
    "overview history": State(RUNNING, "[data-body=happened] tr", _history),
    "overview killed": State(STOPPED, "[data-body=last] pre", _with(lambda: records.vllm())),
    "overview rebooted, newer revision": State(STOPPED, ".notice.warn", _with(_newer)),
    "overview failed": State(STOPPED, ".notice.danger", _failed),
    "overview creating": State(
        STOPPED, ".notice .bar", _with(lambda: records.vllm(status="creating", **CREATING))
    ),
    "overview start refused": State(
        STOPPED, "[data-actions] [data-key=start]", _refused,
        script="document.querySelector('[data-actions] [data-key=start]').click()",
    ),
    "overview apps of all kinds": State(RUNNING, "[data-token]", records.serve_kinds),
    "overview app failed at once": State(
        STOPPED, "[data-actions] [data-key=start]", _failed_at_once,
        script="document.querySelector('[data-actions] [data-key=start]').click()",
    ),
    "apps": State(f"{RUNNING}/apps", "[data-rows=apps] .state", _with(lambda: records.running())),
    "apps none": State(f"{RUNNING}/apps", "[data-none=ports]", _with(lambda: records.running(**OFF))),
    "apps stopped": State(
        f"{RUNNING}/apps", "[data-rows=ports] tr",
        _with(lambda: records.running(status="stopped", allowed_actions=shared.ACTIONS["stopped"])),
    ),
    "apps open": State(
        f"{RUNNING}/apps", "[data-key=open-tensorboard]", _with(lambda: records.running()),
        script="document.querySelector('[data-key=open-tensorboard]').click()",
    ),
    "apps of all kinds": State(f"{RUNNING}/apps", "[data-token]", records.serve_kinds),
    "apps connect": State(
        f"{RUNNING}/apps", "[data-key=open-sshd]", records.serve_kinds,
        script="document.querySelector('[data-key=open-sshd]').click()",
    ),
    "apps open with a token": State(
        f"{RUNNING}/apps", "[data-key=open-jupyter]", records.serve_kinds,
        script="document.querySelector('[data-key=open-jupyter]').click()",
    ),
    "apps token shown": State(
        f"{RUNNING}/apps", "[data-key=show-token-jupyter]", records.serve_kinds,
        script="document.querySelector('[data-key=show-token-jupyter]').click()",
    ),
    "settings": State(f"{STOPPED}/settings", ".env-row", _with(lambda: records.vllm(env=ENV))),
    "settings command": State(
        f"{STOPPED}/settings", ".env-row",
        _with(lambda: records.vllm(env=ENV, command=["sh", "-c", f"{HOSTILE}\nexit 3"])),
        script="const field = document.querySelector('[name=command]'); field.value = 'a\\n\\nb';"
        "field.dispatchEvent(new Event('input', {bubbles: true}));"
        "document.querySelector('[data-key=save]').click()",
    ),
    "settings command replaced": State(
        f"{STOPPED}/settings", "[name=command]", _with(lambda: records.vllm(command=["python3", "train.py"])),
        script="const field = document.querySelector('[name=command]'); field.value = '';"
        "field.dispatchEvent(new Event('input', {bubbles: true}))",
    ),
    "settings without GPUs": State(f"{STOPPED}/settings", ".env-row", _without_gpus),
    "settings running": State(
        f"{RUNNING}/settings", "[data-reasons] .notice", _with(lambda: records.running())
    ),
    "settings on its way": State(
        f"{RUNNING}/settings", "[data-reasons] .notice",
        _with(lambda: records.running(status="starting", allowed_actions=shared.ACTIONS["starting"])),
    ),
    "settings hostile": State(
        f"{STOPPED}/settings", ".env-row",
        _with(lambda: records.vllm(env=[{"name": "A", "value": HOSTILE}], display_name=HOSTILE)),
    ),
    "settings delete": State(
        f"{STOPPED}/settings", "[data-ending] button", _with(lambda: records.vllm()),
        script="document.querySelector('[data-ending] button').click()",
    ),
    "workspace menu": State(
        RUNNING, "[data-actions] details", _with(lambda: records.running()),
        script="document.querySelector('[data-actions] details').open = true",
    ),
    "workspace rename": State(
        RUNNING, "[data-actions] details", _with(lambda: records.running()),
        script="document.querySelector('[data-actions] details li button').click()",
    ),
    "workspace being set up": State("/workspaces/eval-harness", "[data-setup]"),
    "workspace not there": State("/workspaces/nothing", ".empty"),
    "workspace not read": State(RUNNING, ".notice.danger", _unread),
}  # fmt: skip
