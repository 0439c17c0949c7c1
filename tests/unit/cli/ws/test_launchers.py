"""`svc ws launchers`, `svc ws launcher start|stop`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

PATH = "/api/workspaces/demo/launchers"
AT = "2025-01-02T03:04:05Z"
SSH = "ssh -N -L 20001:127.0.0.1:20001 ada@svc.example"
LINE = f"web\tstarted\t\t{AT}\t\thttp://127.0.0.1:20001\ttrue\tThe web\n"


def record(**more: Any) -> dict[str, Any]:
    """A launcher as the API tells of it."""
    base = {"name": "web", "title": "The web", "port": "http", "autostart": True, "state": "started"}
    base |= {"exit_code": None, "started_at": AT, "finished_at": None, "host_port": 20001}
    base |= {"kind": "http", "url": "http://127.0.0.1:20001", "connect": "http://127.0.0.1:20001", "ssh": SSH}
    return base | {"token": None, "link": None} | more


def test_list(service: Service, svc: Svc) -> None:
    service.answer(f"GET {PATH}", {"items": [record()]})
    assert svc("ws", "launchers", "demo") == (0, LINE.replace("\n", f"\t{SSH}\t\t\n"), "")
    heading, row, *ways = svc("ws", "launchers", "demo", terminal=True).out.splitlines()
    assert heading.split() == ["NAME", "STATE", "EXIT", "STARTED", "FINISHED", "ADDRESS", "AUTO", "TITLE"]
    assert "http://127.0.0.1:20001 " in row  # which no table cuts
    assert ways == ["", "web: http://127.0.0.1:20001", f"From another computer, first: {SSH}"]
    assert json.loads(svc("ws", "launchers", "demo", "--json").out) == {"items": [record()]}


def test_list_with_the_ways_in(service: Service, svc: Svc) -> None:
    link = "http://127.0.0.1:20001/lab?token=s3cret"
    login = record(name="login", connect="ssh -p 20002 root@127.0.0.1", url=None, ssh=SSH.replace("1", "2"))
    service.answer(f"GET {PATH}", {"items": [
        record(token="s3cret", link=link), record(name="plain", token="0ther"), login,
        record(name="dead", state="exited", exit_code=1), record(name="off", state="stopped"),
    ]})  # fmt: skip
    ways = svc("ws", "launchers", "demo", terminal=True).out.splitlines()[7:]
    assert ways == [
        f"web: {link}",
        "plain: http://127.0.0.1:20001",
        "plain: its token is 0ther",
        "login: ssh -p 20002 root@127.0.0.1",
        "The output of dead: svc ws logs demo --launcher dead",
        f"From another computer, first: {SSH}",
        f"From another computer, first: {login['ssh']}",
    ]
    piped = svc("ws", "launchers", "demo").out.splitlines()
    assert piped[0].split("\t")[-3:] == [SSH, "s3cret", link]


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


@pytest.mark.parametrize("line", ["ws launcher show demo", "ws launcher start demo"])
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    done = svc(*line.split())
    assert (done.code, done.out, service.sent) == (2, "", [])
    assert "\nhint: svc ws launcher" in done.err


def test_one_that_is_done(service: Service, svc: Svc) -> None:
    service.answer(f"POST {PATH}/web/start", record(state="exited", exit_code=0))
    done = svc("ws", "launcher", "start", "demo", "web", terminal=True)
    assert done.out == "web has ended with exit code 0; its output: svc ws logs demo --launcher web\n"
