"""The composer in each of its states."""

from __future__ import annotations

import time
from typing import Any

from pages import records
from pages.canned import Canned
from pages.composer import records as composer
from pages.states import State


def _answers(**answers: Any) -> Any:
    def prepare(canned: Canned) -> None:
        composer.serve(canned)
        canned.answers |= answers

    return prepare


def _refused(status: int, code: str) -> Any:
    def prepare(canned: Canned) -> None:
        composer.serve(canned)
        canned.refuse("GET /api/templates", status, code, "it is not to be", retryable=status == 503)

    return prepare


def _slow() -> dict[str, Any]:
    time.sleep(3)
    return records.capacity()


FAILED = composer.operation(
    status="failed",
    phase="pulling",
    error={
        "code": "engine_failed",
        "message": "the registry refused it",
        "hint": "svc image pull vllm --wait",
    },
)
NO_GPUS = records.capacity() | {"gpus": [], "host": records.capacity()["host"] | {"gpus": 0, "gpus_free": 0}}
MORE = "document.querySelector('[data-rest] > summary').click()"
PORT = """
const timer = setInterval(() => {
  const add = document.querySelector('[data-key=add-ports]');
  if (!add) return;
  clearInterval(timer);
  add.click();
  const kind = document.querySelector('[data-part=kind]');
  kind.value = 'ssh';
  kind.dispatchEvent(new Event('change', { bubbles: true }));
}, 20);
"""
STATES: dict[str, State] = {
    "composer": State("/new?template=vllm", ".slot.would", composer.serve),
    "composer, unfolded": State("/new?template=vllm", ".slot.would", composer.serve, script=MORE),
    "composer, a port": State("/new?template=vllm", ".slot.would", composer.serve, script=f"{MORE};{PORT}"),
    "composer, refused": State(
        "/new?template=vllm", "[data-blocked]",
        _answers(**{composer.CHECK: composer.checked(composer.OVER, gpus=())}),
    ),
    "composer, like another": State("/new?from=train-7b", ".composer .pick", composer.serve),
    "composer, a lost template": State("/new?template=gone", "[data-lost]", composer.serve),
    "composer, limits not applied": State(
        "/new", ".composer .pick",
        _answers(**{
            "GET /api/workspaces": records.page([records.workspace("lab", limits_missing=["memory_bytes"])])
        }),
    ),
    "composer, without GPUs": State(
        "/new", ".composer .pick", _answers(**{"GET /api/workspaces/capacity": NO_GPUS})
    ),
    "composer, loading": State("/new", ".skel", _answers(**{"GET /api/workspaces/capacity": _slow})),
    "composer, no template": State("/new", ".empty", _answers(**{"GET /api/templates": records.page([])})),
    "composer, no permission": State("/new", ".notice", _refused(403, "forbidden")),
    "composer, error": State("/new", "[data-countdown]", _refused(503, "unavailable")),
    "composer, something under way": State(
        "/new", "[data-notes] .notice",
        _answers(**{"GET /api/operations": records.page([composer.operation()])}),
    ),
    "composer, setting up": State("/new?setup=op-9d2mx41r", ".steps .now", composer.serve),
    "composer, set-up failed": State(
        "/new?setup=op-9d2mx41r", ".steps .bad", _answers(**{"GET /api/operations/op-9d2mx41r": FAILED})
    ),
    "composer, set-up gone": State(
        "/new?setup=op-gone", ".notice", composer.serve
    ),
}  # fmt: skip
