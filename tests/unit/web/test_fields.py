"""Values that are refused, and by which name (HOSTILE rows 36 to 38)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from unit.serving import checked

from svc.limits import BODY_MAX, EXEC_BODY_MAX
from svc_helper.wire.limits import EXEC_ARG_MAX, EXEC_COMMAND_BYTES_MAX

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
        ({"display_name": "\u202eabc"}, "display_name", "invalid"),
        ({"display_name": "a" * 129}, "display_name", "invalid"),
        ({"env": [{"name": "A=B", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "1a", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": ".a", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "-a", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "a b", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "a\n", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "a" * 129, "value": ""}]}, "env.0.name", "invalid"),
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


@pytest.mark.parametrize("name", ["discovery.type", "my-var", "_", "spring.main.banner-mode", "a" * 128])
def test_names_of_variables_that_engines_take(listeners: Any, lab: str, name: str) -> None:
    request = REQUESTED | {"env": [{"name": name, "value": "1"}], "name": "BAD"}
    error = checked(listeners.ask("ada", "POST", "/api/workspaces", json=request), 422, "validation_failed")
    assert [row["field"] for row in error["fields"]] == ["name"]


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
    [
        [], [""], "ls", [5], ["a\0b"], None, ["true", ["x"]],
        ["true", "x" * (EXEC_ARG_MAX + 1)], ["true", "ü" * (EXEC_ARG_MAX // 2 + 1)],
        ["x" * 100_000] * 21, ["x"] * (EXEC_COMMAND_BYTES_MAX // 10 + 1),
    ],
    ids=lambda command: str(command)[:20],
)  # fmt: skip
def test_exec_commands(listeners: Any, lab: str, command: Any) -> None:
    response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
    assert checked(response, 422, "validation_failed")["fields"][0]["field"].startswith("command")
    assert listeners.far.verbs() == []


def test_the_limits_of_a_command_in_words(listeners: Any, lab: str) -> None:
    for command, message in (
        (
            ["cat", "x" * 131_072],
            "command item 2: A word of 131072 bytes; Linux passes at most 131071 in one",
        ),
        (
            ["ls"] * 200_000,
            "command: 200000 words take 2.1 MiB, nine bytes for each included; Linux passes at",
        ),
    ):
        response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
        assert checked(response, 422, "validation_failed")["message"].startswith(message)


@pytest.mark.parametrize(
    "command",
    [["x"] * 4000, ["x" * EXEC_ARG_MAX], ["ls", *['"\n\\' * 30_000] * 20], ["ü" * 60_000] * 16],
    ids=lambda command: str(len(command)),
)
def test_a_command_is_as_long_as_the_kernel_takes_it(listeners: Any, lab: str, command: list[str]) -> None:
    """Past the root helper, whose messages have 64 KiB."""
    body = json.dumps({"command": command}, ensure_ascii=False).encode()
    response = listeners.ask(
        "ada", "POST", f"/api/workspaces/{lab}/exec", data=body, content_type="application/json"
    )
    assert response.status_code == 200, response.get_json()
    assert listeners.far.calls[-1].args["command"] is None
    assert listeners.far.inputs[-1] == b"".join(word.encode() + b"\0" for word in command)


def test_no_other_body_may_be_as_long(listeners: Any, lab: str) -> None:
    long = {"command": ["x" * 1000] * 1100}
    for path, most in (("rename", BODY_MAX), ("exec", EXEC_BODY_MAX)):
        response = listeners.ask(
            "ada", "POST", f"/api/workspaces/{lab}/{path}", json=long | {"x": "y" * most}
        )
        assert checked(response, 413, "too_large")["details"] == {"limit": most}
    body = b'{"command": [' + b"[]," * 20 + b"[]]}"
    response = listeners.ask(
        "ada", "POST", f"/api/workspaces/{lab}/exec", data=body, content_type="application/json"
    )
    checked(response, 400, "invalid_json")
