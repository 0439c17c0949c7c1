"""`svc ws ports`, `svc ws port add|remove`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

PATH = "/api/workspaces/demo/ports"
SSH = "ssh -N -L 20001:127.0.0.1:20001 ada@svc.example"
APP = "http://web-f7d3k2qa.localhost:24681/"
LINE = f"web\t8000\thttp://127.0.0.1:20001\topen\t2\towner\t5\t{SSH}\thttp\tfalse\t{APP}\n"


def record(**more: Any) -> dict[str, Any]:
    """A port as the API tells of it."""
    base = {"name": "web", "container_port": 8000, "host_port": 20001, "url": "http://127.0.0.1:20001"}
    base |= {"label": "web-f7d3k2qa", "app_local_url": APP}
    base |= {"ssh": SSH, "kind": "http", "connect": base["url"]}
    return (
        base | {"state": "open", "connections": 2, "access": "owner", "refused": 5, "listens": False} | more
    )


def test_list(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", {"items": [record()]})
    assert svc("ws", "ports", "demo") == (0, LINE, "")
    heading, row, _, first, command = svc("ws", "ports", "demo", terminal=True).out.splitlines()
    assert (first, command) == ("From another computer, first:", f"  {SSH}")
    assert heading.split() == [
        "NAME",
        "INSIDE",
        "ADDRESS",
        "STATE",
        "CONNECTIONS",
        "ACCESS",
        "REFUSED",
        "KIND",
        "LISTENS",
        "LINK",
    ]
    assert row.split() == [
        "web",
        "8000",
        "http://127.0.0.1:20001",
        "open",
        "2",
        "owner",
        "5",
        "http",
        "no",
        APP,
    ]
    assert json.loads(svc("ws", "ports", "demo", "--json").out) == {"items": [record()]}


def test_list_of_nothing(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", {"items": []})
    assert svc("ws", "ports", "demo") == (0, "", "")
    assert "svc ws port add demo" in svc("ws", "ports", "demo", terminal=True).out


def test_add(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}", record(), status=201)
    line = ("ws", "port", "add", "demo", "web", "--container-port", "8000")
    assert svc(*line) == (0, LINE, "")
    assert service.last.json == {"name": "web", "container_port": 8000}
    first, second = svc(*line, terminal=True).out.splitlines()
    assert first == "web is at http://127.0.0.1:20001"
    assert second == f"From another computer, first: {SSH}"
    assert json.loads(svc(*line, "--json").out) == record()


def test_add_of_another_kind(service: Service, svc: Svc) -> None:
    service.answer(
        f"POST {PATH}", record(kind="ssh", url=None, connect="ssh -p 20001 ada@127.0.0.1"), status=201
    )
    line = ("ws", "port", "add", "demo", "login", "--kind", "ssh", "--user", "ada")
    assert svc(*line, terminal=True).out.startswith("login is at ssh -p 20001 ada@127.0.0.1\n")
    assert service.last.json == {"name": "login", "kind": "ssh", "user": "ada"}


def test_add_for_every_user(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}", record(access="host"), status=201)
    line = ("ws", "port", "add", "demo", "web", "--container-port", "8000", "--access", "host")
    assert svc(*line).code == 0
    assert service.last.json == {"name": "web", "container_port": 8000, "access": "host"}


def test_add_to_a_stopped_one(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}", record(state="closed"), status=201)
    out = svc("ws", "port", "add", "demo", "web", "--container-port", "8000", terminal=True).out
    assert "once the workspace runs: svc ws start demo" in out


def test_remove(service: Service, svc: Svc) -> None:
    service.answer(f"DELETE {PATH}/web", None, status=204)
    assert svc("ws", "port", "remove", "demo", "web") == (0, "", "")
    assert svc("ws", "port", "remove", "demo", "web", terminal=True).out == "Port web is deleted.\n"


def test_a_refusal(service: Service, svc: Svc) -> None:
    service.refuse(f"POST {PATH}", 409, "name_taken", "there is one", hint="svc ws ports demo")
    done = svc("ws", "port", "add", "demo", "web", "--container-port", "80")
    assert done == (1, "", "svc: there is one\nhint: svc ws ports demo\n")


@pytest.mark.parametrize(
    "line",
    [
        "ws port bogus",
        "ws port add demo web --kind udp",
        "ws port add demo --container-port 80",
        "ws port add demo web --container-port 0",
        "ws port add demo web --container-port 65536",
        "ws port add demo web --container-port http",
        "ws port add demo a/b --container-port 80",
        "ws port add demo web --container-port 80 --access everybody",
        "ws port remove demo",
        "ws ports",
        "ws port add demo web --container-port 80 --bogus",
    ],
)
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert "\nhint: svc ws port" in done.err


def test_a_hostile_answer_steers_nothing(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}", record(url="\x1b[2J", host_port="\x07"), status=201)
    out = svc("ws", "port", "add", "demo", "web", "--container-port", "80", terminal=True).out
    assert "\x1b" not in out
    assert "\x07" not in out
