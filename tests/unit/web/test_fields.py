"""Values that are refused, and by which name (HOSTILE rows 36 to 38)."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked

REQUESTED = {"name": "new", "template": "base"}


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"name": None}, "name", "null"),
        ({"name": "A"}, "name", "invalid"),
        ({"name": "a" * 10_000}, "name", "invalid"),
        ({"name": "-a"}, "name", "invalid"),
        ({"name": "a\n"}, "name", "invalid"),
        ({"name": "$(id)"}, "name", "invalid"),
        ({"name": "💥"}, "name", "invalid"),
        ({"name": "capacity"}, "name", "invalid"),
        ({"name": 5}, "name", "invalid"),
        ({"template": ""}, "template", "invalid"),
        ({"surprise": 1}, "surprise", "unknown_key"),
        ({"resources": {"surprise": 1}}, "resources.surprise", "unknown_key"),
        ({"resources": []}, "resources", "invalid"),
        ({"resources": {"cpu_limit": "1"}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"cpu_limit": True}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"cpu_limit": 0}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"memory_bytes": 2**64}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"memory_bytes": 1.0}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"memory_bytes": -1}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"gpu_count": 999}}, "resources.gpu_count", "invalid"),
        ({"resources": {"gpu_mode": "greedy"}}, "resources.gpu_mode", "invalid"),
        ({"restart_on_boot": 1}, "restart_on_boot", "invalid"),
        ({"restart_on_boot": "true"}, "restart_on_boot", "invalid"),
        ({"display_name": "a\x1b[31m"}, "display_name", "invalid"),
        ({"display_name": "a" * 129}, "display_name", "invalid"),
        ({"env": [{"name": "A=B", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "A", "value": "\0"}]}, "env.0.value", "invalid"),
        ({"env": [{"name": "A"}]}, "env.0.value", "required"),
        ({"env": [{"name": "A", "value": ""}, {"name": "A", "value": ""}]}, "env.1.name", "invalid"),
        ({"env": [{"name": f"A{n}", "value": ""} for n in range(65)]}, "env", "invalid"),
        ({"env": {"A": "B"}}, "env", "invalid"),
    ],
    ids=str,
)
def test_bad_values(listeners: Any, lab: str, change: dict[str, Any], field: str, code: str) -> None:
    response = listeners.ask("ada", "POST", "/api/workspaces", json=REQUESTED | change)
    error = checked(response, 422, "validation_failed")
    assert (error["fields"][0]["field"], error["fields"][0]["code"]) == (field, code)
    assert listeners.far.verbs() == []


def test_missing_keys_are_all_named(listeners: Any) -> None:
    error = checked(listeners.ask("ada", "POST", "/api/workspaces"), 422, "validation_failed")
    assert {(row["field"], row["code"]) for row in error["fields"]} == {
        ("name", "required"),
        ("template", "required"),
    }


@pytest.mark.parametrize("timeout_s", [0, -1, 601, 1.5, "5", True, None, 10**30])
def test_exec_timeouts(listeners: Any, lab: str, timeout_s: Any) -> None:
    response = listeners.ask(
        "ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["x"], "timeout_s": timeout_s}
    )
    assert checked(response, 422, "validation_failed")["fields"][0]["field"] == "timeout_s"


@pytest.mark.parametrize(
    "command",
    [[], [""], "ls", [5], ["a\0b"], ["x"] * 257, ["x" * (48 * 1024 + 1)], ["x" * 25_000, "y" * 25_000], None],
    ids=lambda command: str(command)[:20],
)
def test_exec_commands(listeners: Any, lab: str, command: Any) -> None:
    response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
    assert checked(response, 422, "validation_failed")["fields"][0]["field"].startswith("command")
    assert listeners.far.verbs() == []


def test_exec_as_large_as_allowed_fits_one_call(listeners: Any, lab: str) -> None:
    command = ['"' * 12_000, "\x01" * 6_000, "ü" * 8_000, "x" * 1_000]
    response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
    assert response.status_code in (200, 413)
    if response.status_code == 413:
        checked(response, 413, "too_large")
