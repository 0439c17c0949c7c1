"""`svc ws open`."""

from __future__ import annotations

import json

import pytest
from fake_service import Service, Svc
from unit.cli.ws.test_launchers import PATH as LAUNCHERS
from unit.cli.ws.test_launchers import record as launcher
from unit.cli.ws.test_ports import APP, PATH, record

SECRET = "svc_tkt_" + "0a" * 32
LINK = {"url": f"{APP}lab", "link": f"{APP}.svc/enter#{SECRET}/lab", "expires_at": "2026-01-02T03:04:05Z"}
FAR = "From another computer, first: ssh -N -L 24681:127.0.0.1:24681 ada@svc.example"


@pytest.fixture
def app(service: Service) -> Service:
    """With one app, which no launcher serves."""
    service.answer(
        f"GET {PATH}", {"items": [record(), record(name="db", kind="postgres", app_local_url=None)]}
    )
    service.answer(f"GET {LAUNCHERS}", {"items": []})
    service.answer(f"POST {PATH}/web/open", LINK, status=201)
    return service


def test_the_address(app: Service, svc: Svc) -> None:
    assert svc("ws", "open", "demo") == (0, f"{APP}\n", "")
    assert svc("ws", "open", "demo", "web", "--path", "/lab") == (0, f"{APP}lab\n", "")
    first, second, third = svc("ws", "open", "demo", terminal=True).out.splitlines()
    assert (first, third) == (APP, FAR)
    assert second.endswith("svc ws open demo web --link")
    assert json.loads(svc("ws", "open", "demo", "--json").out) == record()


def test_a_link(app: Service, svc: Svc) -> None:
    assert svc("ws", "open", "demo", "--link") == (0, f"{LINK['link']}\n", "")
    assert app.last.json == {"path": "/"}
    assert svc("ws", "open", "demo", "--link", terminal=True).out.splitlines()[1:] == [
        "It works once, within five minutes.",
        FAR,
    ]
    svc("ws", "open", "demo", "--link", "--path", "/lab")
    assert app.last.json == {"path": "/lab"}
    assert json.loads(svc("ws", "open", "demo", "--link", "--json").out) == LINK


@pytest.mark.parametrize(
    ("link", "path"),
    [
        ("http://127.0.0.1:20001/lab?token=s3cret", "/lab?token=s3cret"),
        ("http://127.0.0.1:20001", "/"),
        (None, "/"),
    ],
)
def test_it_leads_to_where_the_launcher_says(app: Service, svc: Svc, link: str | None, path: str) -> None:
    app.replies.clear()
    app.answer(f"GET {PATH}", {"items": [record()]})
    app.answer(f"POST {PATH}/web/open", LINK, status=201)
    app.answer(f"GET {LAUNCHERS}", {"items": [launcher(port="x"), launcher(port="web", link=link)]})
    svc("ws", "open", "demo", "--link")
    assert app.last.json == {"path": path}


def test_what_is_no_app(app: Service, svc: Svc) -> None:
    refused = svc("ws", "open", "demo", "db")
    assert (refused.code, "has no address for a browser" in refused.err) == (1, True)
    refused = svc("ws", "open", "demo", "x")
    assert (refused.code, "hint: svc ws ports demo" in refused.err) == (1, True)
    app.replies.clear()
    app.answer(f"GET {PATH}", {"items": [record(), record(name="second")]})
    refused = svc("ws", "open", "demo")
    assert "several apps: web, second; say which" in refused.err
    assert "hint: svc ws open demo web" in refused.err
    app.replies.clear()
    app.answer(f"GET {PATH}", {"items": []})
    assert "no port that a browser opens" in svc("ws", "open", "demo").err


def test_a_start_on_a_terminal_prints_a_link(app: Service, svc: Svc) -> None:
    record = {"id": "ws-f7d3k2qa", "name": "demo", "status": "running", "launchers": [{"name": "web"}]}
    web = launcher(port="web", link="http://127.0.0.1:20001/lab?token=s3cret")
    launchers = [web, launcher(name="login", port="login", kind="ssh"), launcher(port=None, kind=None)]
    app.answer("GET /api/workspaces/ws-f7d3k2qa/launchers", {"items": launchers})
    app.answer("POST /api/workspaces/ws-f7d3k2qa/ports/web/open", LINK, status=201)
    app.answer("POST /api/workspaces/demo/start", record)
    said = svc("ws", "start", "demo", terminal=True).out.splitlines()
    assert said[-1] == f"open: {LINK['link']}"
    assert app.last.json == {"path": "/lab?token=s3cret"}
    assert "open:" not in svc("ws", "start", "demo").out, "a script's output stays as it was"


def test_where_there_is_no_link_a_start_is_none_the_worse(app: Service, svc: Svc) -> None:
    record = {"id": "ws-f7d3k2qa", "name": "demo", "status": "running", "launchers": [{"name": "web"}]}
    app.answer("GET /api/workspaces/ws-f7d3k2qa/launchers", {"items": [launcher(port="web")]})
    app.refuse("POST /api/workspaces/ws-f7d3k2qa/ports/web/open", 501, "not_available", "apps are off")
    app.answer("POST /api/workspaces/demo/start", record)
    done = svc("ws", "start", "demo", terminal=True)
    assert (done.code, "open:" in done.out, done.err) == (0, False, "")
