"""Usage, capacity, recommendations and hardware over HTTP: what they answer is what their schemas say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.gpu_host import GpuHost, lease
from unit.serving import checked, make_template

from svc.domain.gpus import hardware
from svc.web.schemas import usage

HARDWARE = "/api/servers/hardware"
CAPACITY = "/api/workspaces/capacity"
RECOMMEND = "/api/workspaces/recommend"


@pytest.fixture
def gpus(listeners: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[GpuHost]:
    """After the apps, each of which says from its settings where the GPUs are."""
    host = GpuHost(tmp_path, monkeypatch)
    host.have(2)
    yield host
    configured(gpu_provider=hardware.NONE)


def agrees(schema: Any, value: Any) -> bool:
    """Every key, at any depth, is one of the schema's, and none is missing."""
    assert set(value) == set(schema.fields), schema
    for key, field in schema.fields.items():
        inner = getattr(field, "inner", field)
        if hasattr(inner, "schema") and value[key] is not None:
            for one in value[key] if isinstance(value[key], list) else [value[key]]:
                assert agrees(inner.schema, one)
    return True


def test_usage(listeners: Any, lab: str) -> None:
    mine = listeners.ask("ada", "GET", "/api/usage/me").get_json()
    assert agrees(usage.Usage(), mine)
    assert (mine["workspaces"], mine["running"], mine["quota"]["name"]) == (1, 1, "default")
    assert listeners.ask("root", "GET", "/api/usage/me").get_json()["workspaces"] == 0


def test_hardware(listeners: Any, gpus: GpuHost) -> None:
    found = listeners.ask("root", "GET", HARDWARE).get_json()
    assert agrees(usage.HostHardware(), found)
    assert [gpu["index"] for gpu in found["gpus"]] == [0, 1]


def test_capacity(listeners: Any, lab: str, gpus: GpuHost) -> None:
    lease(0, lab)
    for who, workspace in (("ada", "lab"), ("bob", None)):
        found = listeners.ask(who, "GET", CAPACITY).get_json()
        assert agrees(usage.Capacity(), found)
        [holder] = found["gpus"][0]["holders"]
        assert (holder["owner"], holder["workspace"], holder["mine"]) == ("ada", workspace, who == "ada")
        assert holder["since"]
    [holder] = listeners.ask("boss", "GET", CAPACITY).get_json()["gpus"][0]["holders"]
    assert (holder["workspace"], holder["workspace_id"], holder["mine"]) == ("lab", lab, False)
    checked(listeners.ask("root", "GET", CAPACITY), 403, "root_not_allowed")


def test_a_recommendation(listeners: Any, people: Any, gpus: GpuHost) -> None:
    make_template(None, "open")
    found = listeners.ask("ada", "POST", RECOMMEND, json={"template": "open"}).get_json()
    created = dict(found)
    assert agrees(usage.Recommendation(), created)
    assert (created["gpu_use_case"], created["resources"]["gpu_count"]) == ("standard", 1)
    wish = {"template": "open", "name": "new", "resources": created["resources"]}
    assert listeners.ask("ada", "POST", "/api/workspaces", json=wish).status_code == 201


CHECK = "/api/workspaces/check"


def test_a_check_is_a_create_that_makes_nothing(listeners: Any, people: Any, gpus: GpuHost) -> None:
    make_template(None, "open")
    body = {"template": "open", "resources": {"gpu_count": 1}}
    found = listeners.ask("ada", "POST", CHECK, json=body).get_json()
    assert agrees(usage.CheckedWorkspace(), found)
    assert (found["allocatable_now"], found["blocked_by"], len(found["gpus"])) == (True, [], 1)
    assert listeners.ask("ada", "GET", "/api/workspaces").get_json()["total"] == 0
    created = listeners.ask("ada", "POST", "/api/workspaces", json=body | {"name": "new"})
    assert created.status_code == 201
    again = listeners.ask("ada", "POST", CHECK, json=body | {"name": "new"}).get_json()
    assert [block["code"] for block in again["blocked_by"]] == ["name_taken"]


@pytest.mark.parametrize(
    "body",
    [{}, {"template": "open", "name": "check"}, {"template": "open", "resources": {"gpu_count": -1}},
     {"template": "open", "gpu_count": 1}, {"template": "open", "resources": {"cpu_limit": 1e309}},
     {"template": "open", "resources": {"memory_bytes": 2**70}}, {"template": "open", "env": [{}] * 500}],
)  # fmt: skip
def test_what_no_create_takes_no_check_takes(listeners: Any, body: dict[str, Any]) -> None:
    make_template(None, "open")
    response = listeners.ask("ada", "POST", CHECK, json=body)
    assert (response.status_code, response.get_json()["error"]["code"]) in (
        (422, "validation_failed"), (400, "invalid_json"),
    )  # fmt: skip


@pytest.mark.parametrize(
    "body",
    [{}, {"template": ""}, {"template": "open", "gpu_use_case": "all"}, {"template": "open", "more": 1},
     {"template": "open", "gpu_use_case": None}, {"template": 5}],
)  # fmt: skip
def test_what_is_no_wish(listeners: Any, body: dict[str, Any]) -> None:
    checked(listeners.ask("ada", "POST", RECOMMEND, json=body), 422, "validation_failed")


def test_a_template_that_is_not_there(listeners: Any) -> None:
    checked(listeners.ask("ada", "POST", RECOMMEND, json={"template": "open"}), 404, "not_found")
