"""Actions beside hints: each is a real route, a valid body, and open to whoever is told."""

from __future__ import annotations

import re
from typing import Any

import pytest
from unit.serving import MISSING, caller_of, checked, make_template

from svc.actions import commands
from svc.actions.commands import Command, command
from svc.actions.table import TABLE, WORKSPACE_EDIT, WORKSPACE_START
from svc.db.connect import database
from svc.domain.accounts import tokens
from svc.domain.quotas import usage
from svc.errors import NotFound
from svc.web.access import Route

EXAMPLES = [
    *(
        command(row, **dict.fromkeys(re.findall(r"{(\w+)}", row.command), "thing"))
        for row in TABLE
        if row.button and row != WORKSPACE_EDIT
    ),
    commands.edit("thing", {"resources": {"gpu_count": 1}}),
    commands.upgrade_preview("thing"),
    commands.workspace_log("thing"),
    commands.launcher_log("thing", "thing"),
    commands.operation_watch("thing"),
    commands.operation_log("thing"),
]


@pytest.mark.parametrize("made", EXAMPLES)
def test_each_is_a_real_route_with_a_valid_body(listeners: Any, made: Command) -> None:
    action = made.action
    assert action is not None and set(action) == {"label", "method", "path", "body"}
    app = listeners.apps["tls"]
    endpoint, _ = app.url_map.bind("").match(action["path"], action["method"])
    route = app.view_functions[endpoint].route
    assert isinstance(route, Route)
    if action["body"] is not None:
        assert (route.body.validate(action["body"]) if route.body else action["body"]) == {}
    assert route.access.pat and set(route.access.listeners) == {"unix", "tls"}  # whoever has such a thing


def test_the_action_is_carried_out(listeners: Any, lab: str) -> None:
    """A workspace that runs is stopped by its button, and then edited."""
    refused = listeners.ask("ada", "PATCH", f"/api/workspaces/{lab}", json={"display_name": "x"})
    action = checked(refused, 409, "workspace_not_stopped")["action"]
    assert action == {"label": "Stop lab", "method": "POST", "path": "/api/workspaces/lab/stop", "body": {}}
    assert listeners.ask("ada", action["method"], action["path"], json=action["body"]).status_code == 200
    assert (
        listeners.ask("ada", "PATCH", f"/api/workspaces/{lab}", json={"display_name": "x"}).status_code == 200
    )


def test_a_missing_image(listeners: Any, lab: str) -> None:
    database.execute_sql("UPDATE workspaces SET status = 'stopped', container_id = NULL")
    listeners.far.answers["image.inspect"] = MISSING
    error = checked(
        listeners.ask("ada", "POST", f"/api/workspaces/{lab}/start", json={}), 409, "image_missing"
    )
    action = error["action"]
    assert action["label"] == "Pull the image"
    assert listeners.ask("ada", action["method"], action["path"], json=action["body"]).status_code == 202
    assert error["hint"].startswith("svc image pull ")


def test_a_disabled_template(listeners: Any, people: Any) -> None:
    """Enabled by whoever may: its owner, also with a token; an administrator."""
    make_template(None, "shared", status="disabled")
    make_template(people["ada"].id, "mine", status="disabled")
    secret = tokens.create(caller_of(people["ada"], listeners.far), "ci")["secret"]
    token = {"headers": {"Authorization": f"Bearer {secret}"}}
    for who, template, options in (("boss", "shared", {}), ("ada", "mine", {}), (None, "mine", token)):
        body = {"name": "new", "template": template}
        answer = listeners.ask(who, "POST", "/api/workspaces", json=body, **options)
        error = checked(answer, 403, "template_disabled")
        assert error["hint"] == f"svc template enable {template}"
        assert error["action"]["path"] == f"/api/templates/{template}/enable"
    answer = listeners.ask("ada", "POST", "/api/workspaces", json={"name": "new", "template": "shared"})
    assert checked(answer, 404, "not_found")["action"] is None


@pytest.mark.parametrize(("who", "offered"), [("ada", True), ("root", False), ("boss", True)])
def test_only_where_the_route_is_open_to_the_caller(
    listeners: Any, monkeypatch: pytest.MonkeyPatch, who: str, offered: bool
) -> None:
    """Root has no workspaces to start."""

    def refused(_caller: Any) -> None:
        raise NotFound("nothing", hint=command(WORKSPACE_START, ref="lab"))

    monkeypatch.setattr(usage, "me", refused)
    error = checked(listeners.ask(who, "GET", "/api/usage/me"), 404, "not_found")
    assert (error["action"] is not None) == offered


def test_names_are_the_callers_own(listeners: Any, lab: str) -> None:
    """An administrator's own `lab` is another one than ada's."""
    listeners.far.answers["ctr.stop"] = "not_running"
    answer = listeners.ask("boss", "POST", f"/api/workspaces/{lab}/stop?owner=ada", json={})
    action = answer.get_json().get("error", {}).get("action")
    assert action is None or "owner=ada" in action["path"]


def test_trying_again(listeners: Any, lab: str) -> None:
    listeners.far.answers["ctr.stats"] = None
    path = f"/api/workspaces/{lab}/monitor"
    error = checked(listeners.ask("ada", "GET", path), 503, "engine_unavailable")
    assert error["action"] == {"label": "Try again", "method": "GET", "path": path, "body": None}
    listeners.far.answers["ctr.exec"] = None
    answer = listeners.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]})
    assert checked(answer, 503, "engine_unavailable")["action"] is None  # the body is the client's


def test_strangers_get_none(listeners: Any) -> None:
    assert checked(listeners.ask(None, "GET", "/api/users/me"), 401, "unauthenticated")["action"] is None
    assert (
        checked(listeners.ask("stranger", "GET", "/api/users/me"), 403, "account_missing")["action"] is None
    )
