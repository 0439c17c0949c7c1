"""Templates over HTTP: what goes in names its field when it is wrong, what comes out has no secret."""

from __future__ import annotations

from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import IMAGE, checked, make_template

from svc.limits import BUNDLE_DOCKERFILE_MAX

TOO_LONG = "x" * (BUNDLE_DOCKERFILE_MAX + 1)
RECIPE = "FROM registry.example/debian:12\n"
SOURCE = {"type": "registry", "image_ref": IMAGE}
WHOLE: dict[str, Any] = {
    "name": "whole",
    "description": "Everything",
    "source": SOURCE,
    "defaults": {"gpu_count": 1, "gpu_mode": "shared", "memory_bytes": 2**30},
    "limits": {"gpu_count": 2, "cpu_limit": 4},
    "gpu": {
        "min_cuda": "12.4",
        "min_vram_bytes": 2**34,
        "min_compute_capability": "8.0",
        "allow_shared": True,
    },
    "command": ["sleep", "infinity"],
    "run_as": {"uid": 1000, "gid": 1000},
    "env": [{"name": "A", "value": "1"}, {"name": "KEY", "value": "s3cret", "secret": True}],
    "launchers": [{"name": "lab", "title": "Jupyter", "command": ["jupyter", "lab"], "port": "web"}],
    "ports": [{"name": "web", "container_port": 8888}],
    "mounts": [{"root": "data", "path": "/data", "read_only": True}],
}


@pytest.fixture(autouse=True)
def roots(monkeypatch: pytest.MonkeyPatch) -> None:
    configured(file_roots=dict.fromkeys(("work", "data"), False))


def test_everything_there_and_back(listeners: Any) -> None:
    response = listeners.ask("ada", "POST", "/api/templates", json=WHOLE)
    assert response.status_code == 201, response.text
    record = response.get_json()
    assert response.headers["Location"] == f"/api/templates/{record['id']}"
    for key in ("description", "defaults", "limits", "gpu", "command", "run_as", "mounts"):
        assert record[key] == WHOLE[key], key
    defaults = {"access": "owner", "kind": "http", "user": None}
    assert record["ports"] == [defaults | port for port in WHOLE["ports"]]
    assert record["launchers"] == [WHOLE["launchers"][0] | {"env": [], "autostart": False}]
    assert record["env"] == [
        {"name": "A", "value": "1", "secret": False, "is_set": True},
        {"name": "KEY", "value": None, "secret": True, "is_set": True},
    ]
    assert listeners.ask("ada", "GET", "/api/templates/whole").get_json() == record
    lab = listeners.ask(
        "ada", "POST", "/api/workspaces", json={"name": "lab", "template": "whole"}
    ).get_json()
    assert [mount["path"] for mount in lab["mounts"]] == ["/work", "/data"]
    assert "s3cret" not in str(lab)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"source": None}, "source"),
        ({"source": {"type": "archive"}}, "source.type"),
        ({"source": {"type": "dockerfile"}}, "source.dockerfile"),
        ({"source": {"type": "dockerfile", "dockerfile": TOO_LONG}}, "source.dockerfile"),
        ({"source": {"type": "dockerfile", "dockerfile": "RUN x\n"}}, "source.dockerfile"),
        ({"source": SOURCE | {"local_only": "yes"}}, "source.local_only"),
        ({"source": SOURCE | {"context": "a"}}, "source.context"),
        ({"defaults": {"gpu_count": 3}}, "defaults.gpu_count"),
        ({"gpu": {"min_cuda": "twelve"}}, "gpu.min_cuda"),
        ({"env": [{"name": "A"}]}, "env.0.value"),
        ({"env": [{"name": "A", "value": "", "is_set": True}]}, "env.0.is_set"),
        ({"env": [{"name": "A", "value": "1"}, {"name": "A", "secret": True}]}, "env.1.name"),
        ({"ports": [{"name": "web", "container_port": 0}]}, "ports.0.container_port"),
        ({"ports": []}, "launchers.0.port"),
        ({"launchers": [{"name": "lab"}]}, "launchers.0.command"),
        ({"mounts": [{"root": "nope", "path": "/data"}]}, "mounts.0.root"),
        ({"mounts": [{"root": "data", "path": "/etc"}]}, "mounts.0.path"),
        ({"status": "enabled"}, "status"),
    ],
    ids=lambda part: str(part)[:40],
)  # fmt: skip
def test_errors_name_the_field(listeners: Any, change: dict[str, Any], field: str) -> None:
    error = checked(
        listeners.ask("ada", "POST", "/api/templates", json=WHOLE | change), 422, "validation_failed"
    )
    assert field in [one["field"] for one in error["fields"]], error
    created = listeners.ask("ada", "POST", "/api/templates", json=WHOLE)
    assert created.status_code == 201
    patch = {"ports": []} if field.startswith("launchers.0.port") else change
    error = checked(
        listeners.ask("ada", "PATCH", "/api/templates/whole", json=patch), 422, "validation_failed"
    )
    assert error["fields"], error
    assert listeners.ask("ada", "GET", "/api/templates/whole").get_json()["revision"] == 1


def test_a_list_shows_no_changes(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    listeners.ask("ada", "PATCH", "/api/templates/base", json={"description": "x"})
    for item in listeners.ask("ada", "GET", "/api/templates").get_json()["items"]:
        assert all(finding["diff"] is None for finding in item["findings"])


def test_clone_dockerfile_and_back(listeners: Any, people: Any) -> None:
    make_template(None, "open", dockerfile=RECIPE)
    assert listeners.ask("ada", "GET", "/api/templates/open/dockerfile").get_json() == {
        "dockerfile": RECIPE, "read_only": True,
    }  # fmt: skip
    for who in ("ada", "boss", "root"):
        for method, path, body in (
            ("PUT", "/dockerfile", {"dockerfile": "FROM scratch"}),
            ("PATCH", "", {"source": {"dockerfile": "FROM scratch"}}),
        ):
            error = checked(
                listeners.ask(who, method, f"/api/templates/open{path}", json=body), 403, "read_only"
            )
            assert error["hint"] == "svc template clone open --name open-own"
    response = listeners.ask("ada", "POST", "/api/templates/open/clone", json={"name": "mine"})
    clone = response.get_json()
    assert (response.status_code, clone["status"], clone["cloned_from"]) == (201, "disabled", "tpl-0000open")
    response = listeners.ask(
        "ada", "PUT", "/api/templates/mine/dockerfile", json={"dockerfile": "FROM scratch\n"}
    )
    assert response.get_json()["revision"] == 2
    assert listeners.ask("ada", "GET", "/api/templates/mine/dockerfile").get_json() == {
        "dockerfile": "FROM scratch\n", "read_only": False,
    }  # fmt: skip
    body = {"dockerfile": "FROM scratch\nRUN\n"}
    error = checked(
        listeners.ask("ada", "PUT", "/api/templates/mine/dockerfile", json=body), 422, "validation_failed"
    )
    assert error["fields"][0]["field"] == "source.dockerfile"


def test_enable_says_what_is_missing(listeners: Any) -> None:
    source = {"type": "dockerfile", "dockerfile": RECIPE}
    listeners.ask("ada", "POST", "/api/templates", json={"name": "own", "source": source})
    error = checked(listeners.ask("ada", "POST", "/api/templates/own/enable"), 409, "build_required")
    assert error["hint"] == "svc image build own --wait"
    asked = listeners.ask("ada", "POST", "/api/templates/own/enable", json={"revision": 7})
    assert checked(asked, 409, "conflict")["details"] == {"revision": 1}
    source = {"type": "dockerfile", "dockerfile": RECIPE, "local_only": True}
    body = {"name": "local", "scope": "global", "source": source}
    listeners.ask("root", "POST", "/api/templates", json=body)
    assert listeners.ask("root", "POST", "/api/templates/local/enable").get_json()["status"] == "enabled"
