"""One error body for every way to fail, and what every answer carries."""

from __future__ import annotations

import json
from typing import Any

import pytest
from flask import Blueprint, Flask, g
from unit.serving import MISSING, checked

from svc.actions.access import ACCOUNTS
from svc.db import faults
from svc.db.connect import database
from svc.errors import NotAvailable
from svc.web import access


def test_unknown_path_and_method(listeners: Any) -> None:
    checked(listeners.ask("ada", "GET", "/api/nothing"), 404, "not_found")
    checked(listeners.ask(None, "GET", "/nothing"), 404, "not_found")
    response = listeners.ask("ada", "PUT", "/api/workspaces", json={})
    checked(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, POST"
    checked(listeners.ask(None, "OPTIONS", "/api/workspaces"), 405, "method_not_allowed")
    assert listeners.ask("ada", "HEAD", "/api/workspaces").status_code == 200


def test_unauthenticated_is_one_text(listeners: Any) -> None:
    response = listeners.ask(None, "GET", "/api/users/me")
    error = checked(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    other = checked(listeners.ask(None, "GET", "/api/workspaces/ws-0000000a"), 401, "unauthenticated")
    assert error["message"] == other["message"]


REQUESTED = {"name": "new", "template": "base"}


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (None, 503, "engine_unavailable"),
        ("unavailable", 503, "engine_unavailable"),
        ("timeout", 504, "engine_timeout"),
        ("failed", 502, "engine_failed"),
        ("storage_full", 507, "storage_full"),
        ("account", 403, "account_disabled"),
        ("protocol", 500, "internal_error"),
        ({"nonsense": 1}, 502, "engine_failed"),
        ("not_running", 409, "workspace_not_running"),
    ],
)
def test_engine_failures(listeners: Any, lab: str, answer: Any, status: int, code: str) -> None:
    listeners.far.answers["ctr.exec"] = answer
    response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]})
    checked(response, status, code)


def test_a_dead_helper(listeners: Any, lab: str) -> None:
    listeners.far.theirs.shutdown(2)
    checked(listeners.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={}), 503, "engine_unavailable")
    response = listeners.ask(None, "GET", "/api/health")
    assert (response.status_code, response.get_json()["status"]) == (503, "degraded")
    assert response.get_json()["db"] == "ok"
    # nobody is let in whom the host was not asked about
    checked(listeners.ask("ada", "GET", "/api/workspaces"), 503, "engine_unavailable")


def test_wrong_states(listeners: Any, lab: str) -> None:
    response = listeners.ask("ada", "PATCH", f"/api/workspaces/{lab}", json={"display_name": "Lab"})
    error = checked(response, 409, "workspace_not_stopped")
    assert error["hint"] == "svc ws stop lab"
    listeners.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={})
    listeners.far.answers["ctr.inspect"] = {"exists": True, "status": "stopped"}
    response = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]})
    assert checked(response, 409, "workspace_not_running")["hint"] == "svc ws start lab"


def test_a_missing_image(listeners: Any, lab: str) -> None:
    listeners.far.answers["image.inspect"] = MISSING
    response = listeners.ask("ada", "POST", "/api/workspaces", json=REQUESTED)
    assert (response.status_code, response.get_json()["image_status"]) == (201, "missing")
    assert response.headers["Location"] == f"/api/workspaces/{response.get_json()['id']}"
    response = listeners.ask("ada", "POST", "/api/workspaces/new/start", json={})
    assert checked(response, 409, "image_missing")["hint"] == "svc image pull base --wait"


def test_a_reserved_route_says_so() -> None:
    blueprint, app = Blueprint("later", __name__), Flask(__name__)
    access.reserve(blueprint, "GET", "/later", ACCOUNTS, "The future")
    app.register_blueprint(blueprint)
    with app.test_request_context("/later?x=1"), pytest.raises(NotAvailable) as raised:
        g.caller = None
        app.view_functions["later.get_later"]()
    assert (raised.value.status, raised.value.message) == (501, "The future is not in this release")


def test_what_nobody_foresaw_is_logged_and_not_shown(
    listeners: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise ValueError("secret words")

    monkeypatch.setattr("svc.web.api.workspaces.workspaces.page_of", broken)
    error = checked(listeners.ask("ada", "GET", "/api/workspaces"), 500, "internal_error")
    assert "secret" not in json.dumps(error)
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert line["rid"] == error["request_id"]
    assert "secret words" in line["error"]
    assert "Traceback" in line["trace"]


def test_a_full_disk(listeners: Any, lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = database.execute_sql

    def full(sql: str, *rest: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE")):
            raise faults.full()
        return real(sql, *rest)

    monkeypatch.setattr(database, "execute_sql", full)
    checked(listeners.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={}), 507, "storage_full")
    assert listeners.ask("ada", "GET", "/api/workspaces").status_code == 200
    assert listeners.far.verbs() == []
