"""`svc ws launchers`, `svc ws launcher start|stop`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

PATH = "/api/workspaces/demo/launchers"
AT = "2025-01-02T03:04:05Z"
LINE = f"web\tstarted\t\t{AT}\t\thttp://127.0.0.1:20001\ttrue\tThe web\n"


def record(**more: Any) -> dict[str, Any]:
    """A launcher as the API tells of it."""
    base = {"name": "web", "title": "The web", "port": "http", "autostart": True, "state": "started"}
    base |= {"exit_code": None, "started_at": AT, "finished_at": None, "host_port": 20001}
    return base | {"url": "http://127.0.0.1:20001"} | more


def test_list(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", {"items": [record()]})
    assert svc("ws", "launchers", "demo") == (0, LINE, "")
    heading = svc("ws", "launchers", "demo", terminal=True).out.splitlines()[0]
    assert heading.split() == ["NAME", "STATE", "EXIT", "STARTED", "FINISHED", "URL", "AUTO", "TITLE"]
    assert json.loads(svc("ws", "launchers", "demo", "--json").out) == {"items": [record()]}


def test_list_of_nothing(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", {"items": []})
    assert svc("ws", "launchers", "demo") == (0, "", "")
    assert "no launchers" in svc("ws", "launchers", "demo", terminal=True).out


@pytest.mark.parametrize("verb", ["start", "stop"])
def test_start_and_stop(service: Service, svc: Svc, verb: str) -> None:
    service.answer(f"POST {PATH}/web/{verb}", record())
    assert svc("ws", "launcher", verb, "demo", "web") == (0, LINE, "")
    assert service.last.json == {}
    out = svc("ws", "launcher", verb, "demo", "web", terminal=True).out
    assert out.startswith("web is started")
    assert ("svc ws logs demo --launcher web" in out) is (verb == "start")


def test_of_a_stopped_workspace(service: Service, svc: Svc) -> None:
    service.refuse(f"POST {PATH}/web/start", 409, "workspace_not_running", "no", hint="svc ws start demo")
    assert svc("ws", "launcher", "start", "demo", "web") == (1, "", "svc: no\nhint: svc ws start demo\n")


@pytest.mark.parametrize("line", ["ws launcher", "ws launcher list demo", "ws launcher start demo"])
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert "\nhint: svc ws launcher" in done.err


def test_one_that_is_done(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}/web/start", record(state="exited", exit_code=0))
    done = svc("ws", "launcher", "start", "demo", "web", terminal=True)
    assert done.out == "web has ended with exit code 0; its output: svc ws logs demo --launcher web\n"
