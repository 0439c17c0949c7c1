"""The workspaces screen in its states."""

from __future__ import annotations

from pages import records
from pages.canned import Canned
from pages.states import State

PATH = "/workspaces"
ROWS = "[data-id='ws-train-7b'] [data-key=app-tensorboard]"
LISTS = ("GET /api/workspaces", "GET /api/operations", "GET /api/usage/workspaces")
STOP = "POST /api/workspaces/ws-train-7b/stop"
START = "POST /api/workspaces/ws-vllm-serve/start"


def press(*selectors: str) -> str:
    """The script that clicks these, one after another."""
    return "".join(f"document.querySelector(`{selector}`).click();" for selector in selectors)


PRESS_STOP = press("[data-id='ws-train-7b'] [data-key=stop]")
PRESS_CONFIRM = press("dialog[open] button[value=confirm]")
PRESS_START = press("[data-id='ws-vllm-serve'] [data-key=start]")


def _empty(canned: Canned) -> None:
    canned.answers |= {request: records.page([]) for request in LISTS}


def _unread(canned: Canned) -> None:
    canned.refuse(LISTS[0], 503, "engine_unavailable", "Podman could not answer", after=600, retryable=True)


def _root(canned: Canned) -> None:
    for request in (LISTS[0], "GET /api/workspaces/capacity"):
        canned.refuse(
            request, 403, "root_not_allowed", "root administers; it has no workspaces",
            hint="svc ws list --all",
        )  # fmt: skip


def _disabled(canned: Canned) -> None:
    canned.refuse("GET /api/auth/session", 403, "account_disabled", "the account is disabled")


def _restarting(canned: Canned) -> None:
    canned.refuse("GET /api/events", 503, "unavailable", "stopping", retryable=True)
    canned.break_off("GET /api/health")


def _signed_out(canned: Canned) -> None:
    canned.refuse(STOP, 401, "unauthenticated", "a valid credential is needed")


def _no_gpus(canned: Canned) -> None:
    capacity = records.capacity()
    capacity["gpus"] = []
    capacity["host"] |= {"gpus": 0, "gpus_free": 0}
    capacity["quota"] |= dict.fromkeys(("max_gpus", "max_cpu", "max_memory_bytes", "max_running"))
    canned.answers["GET /api/workspaces/capacity"] = capacity


def _lost(canned: Canned) -> None:
    items = records.of_the_mock_up()
    items[4]["health"] = "gpu_lost"
    capacity = records.capacity()
    for gpu in capacity["gpus"][:2]:
        gpu["state"] = "lost"
    capacity["used"]["cpu"] = 80
    canned.answers |= {LISTS[0]: records.page(items), "GET /api/workspaces/capacity": capacity}


def _many(canned: Canned) -> None:
    canned.answers[LISTS[0]] = records.page(
        [records.workspace(f"sweep-{number:03}", "running") for number in range(199)]
        + [records.workspace("train-7b", "running")]
    )


def _refused(canned: Canned) -> None:
    canned.refuse(
        START,
        409,
        "image_missing",
        "the image is not in your store",
        hint="svc image pull tpl-1 --wait",
        action={"label": "Pull the image", "method": "POST", "path": "/api/templates/tpl-1/image/pull"},
    )


def _no_gpu_left(canned: Canned) -> None:
    canned.refuse(START, 409, "gpu_unavailable", "no GPU is free", hint="svc ws start vllm-serve", after=60)


STATES = {
    "as the mock-up shows": State(PATH, ROWS),
    "loading": State(PATH, ".skel", lambda canned: canned.hold(*LISTS[:1], "GET /api/workspaces/capacity")),
    "empty": State(PATH, ".empty .cmd", _empty),
    "not read": State(PATH, ".notice [data-countdown]", _unread),
    "no permission": State(PATH, ".notice .cmd", _root),
    "account disabled": State(PATH, ".notice", _disabled),
    "restarting": State(PATH, ".banner", _restarting),
    "session ended": State(PATH, ROWS, _signed_out, PRESS_STOP + PRESS_CONFIRM),
    "no GPUs": State(PATH, ROWS, _no_gpus),
    "lost GPUs": State(PATH, ".slot.lost", _lost),
    "many": State(PATH, ROWS.split()[0], _many),
    "none like that": State(
        PATH,
        ROWS,
        script="const field = document.querySelector('[data-search]'); field.value = 'no such';"
        "field.dispatchEvent(new Event('input', { bubbles: true }));",
    ),
    "filtered": State(PATH, ROWS, script=press("[data-filter=stopped]")),
    "menu": State(PATH, ROWS, script=press("[data-id='ws-train-7b'] [data-key=more]")),
    "stop asks": State(PATH, ROWS, script=PRESS_STOP),
    "delete asks": State(PATH, ROWS, script=press("[data-id='ws-cuda-samples'] details button.danger")),
    "stopping": State(PATH, ROWS, lambda canned: canned.hold(STOP), PRESS_STOP + PRESS_CONFIRM),
    "refused with an action": State(PATH, ROWS, _refused, PRESS_START),
    "refused, no GPU": State(PATH, ROWS, _no_gpu_left, PRESS_START),
    "keys": State(PATH, ROWS, script="document.querySelector('#keys').showModal()"),
    "drawer": State(PATH, ROWS, script="document.querySelector('#drawer').showModal()"),
}
