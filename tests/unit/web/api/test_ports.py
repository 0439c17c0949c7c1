"""Ports over HTTP: what adding one takes (HOSTILE row 43)."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import checked, make_template

PATH = "/api/workspaces/lab/ports"


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"container_port": 80},
        *({"name": "web", "container_port": port} for port in (0, 65536, -1, "80", 80.0, True, 2**70)),
        *({"name": name, "container_port": 80} for name in ("", "a/b", "A", "-x", "x" * 64, "a\n", 5, "é")),
        {"name": "web", "container_port": 80, "host_port": 80},
        *({"name": "web", "container_port": 80, "access": access} for access in ("", "Host", "all", None, 1)),
        *({"name": "web", "kind": kind} for kind in ("", "SSH", "udp", None, 1)),
        *({"name": "web", "kind": "ssh", "user": user} for user in ("", "-x", "a b", "a@b", "$(id)", "é", 5)),
        *({"name": "web", "kind": kind, "user": "ada"} for kind in ("http", "https", "tcp")),
    ],
)
def test_wrong_ones(listeners: Any, lab: str, body: dict[str, Any]) -> None:
    checked(listeners.ask("ada", "POST", PATH, json=body), 422, "validation_failed")
    assert "port.open" not in listeners.far.verbs()


def test_add_show_remove(listeners: Any, lab: str) -> None:
    body = {"name": "web", "container_port": 65535, "access": "host"}
    created = listeners.ask("ada", "POST", PATH, json=body)
    assert (created.status_code, created.get_json()["access"]) == (201, "host")
    record = listeners.ask("ada", "GET", "/api/workspaces/lab").get_json()
    assert {one["name"]: one["access"] for one in record["ports"]} == {"ada": "owner", "web": "host"}
    assert [one["name"] for one in listeners.ask("ada", "GET", PATH).get_json()["items"]] == ["ada", "web"]
    checked(listeners.ask("ada", "POST", PATH, json={"name": "web", "container_port": 1}), 409, "name_taken")
    assert listeners.ask("ada", "DELETE", f"{PATH}/web").status_code == 204
    checked(listeners.ask("ada", "DELETE", f"{PATH}/web"), 404, "not_found")


def test_ports_of_a_new_workspace(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id, ports=[{"name": "http", "container_port": 8888, "access": "host"}])
    body = {"name": "new", "template": "base", "ports": [{"name": "api", "container_port": 80}]}
    created = listeners.ask("ada", "POST", "/api/workspaces", json=body)
    assert created.status_code == 201
    items = listeners.ask("ada", "GET", "/api/workspaces/new/ports").get_json()["items"]
    assert [(one["name"], one["container_port"], one["access"]) for one in items] == [
        ("api", 80, "owner"),
        ("http", 8888, "host"),
    ]
    for wrong in ([{"name": "http", "container_port": 1}], [body["ports"][0]] * 2):
        refused = listeners.ask("ada", "POST", "/api/workspaces", json=body | {"name": "two", "ports": wrong})
        error = checked(refused, 422, "validation_failed")
        assert error["fields"][0]["field"].startswith("ports.")
        assert error["fields"][0]["field"].endswith(".name")
