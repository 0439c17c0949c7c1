"""Quota policies over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked

QUOTAS = "/api/admin/quotas"


def test_a_policy_s_life(listeners: Any) -> None:
    created = listeners.ask("root", "PUT", f"{QUOTAS}/small", json={"max_cpu": 2, "max_running": 0})
    assert created.status_code == 200
    assert created.get_json() == {
        "name": "small", "max_workspaces": None, "max_running": 0, "max_gpus": None, "max_cpu": 2.0,
        "max_memory_bytes": None, "max_image_bytes": None, "users": 0,
    }  # fmt: skip
    value = listeners.ask("root", "PATCH", "/api/users/ada", json={"quota": "small"})
    assert value.get_json()["quota"] == "small"
    page = listeners.ask("boss", "GET", QUOTAS).get_json()
    assert [(one["name"], one["users"]) for one in page["items"]] == [("default", 5), ("small", 1)]
    checked(listeners.ask("boss", "DELETE", f"{QUOTAS}/small"), 409, "conflict")
    listeners.ask("root", "PATCH", "/api/users/ada", json={"quota": None})
    assert listeners.ask("boss", "DELETE", f"{QUOTAS}/small").status_code == 204
    checked(listeners.ask("boss", "DELETE", f"{QUOTAS}/default"), 409, "conflict")
    checked(
        listeners.ask("boss", "PATCH", "/api/users/ada", json={"quota": "small"}), 422, "validation_failed"
    )


@pytest.mark.parametrize(
    "body",
    [
        {"max_running": -1}, {"max_running": 1.0}, {"max_running": True}, {"max_cpu": "2"},
        {"max_cpu": -0.5}, {"max_memory_bytes": 2**51}, {"max_memory_bytes": "32g"}, {"more": 1},
        {"name": "x"}, {"max_gpus": 10**400},
    ],
)  # fmt: skip
def test_what_is_no_policy(listeners: Any, body: dict[str, Any]) -> None:
    checked(listeners.ask("boss", "PUT", f"{QUOTAS}/small", json=body), 422, "validation_failed")


def test_a_name_that_is_none(listeners: Any) -> None:
    checked(listeners.ask("boss", "PUT", f"{QUOTAS}/Small", json={}), 422, "validation_failed")
    for quota in ("", "Small", 5):
        answer = listeners.ask("boss", "PATCH", "/api/users/ada", json={"quota": quota})
        checked(answer, 422, "validation_failed")
