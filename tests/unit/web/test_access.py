"""The authorisation matrix: every route x method x identity.

A cell is `ok` (2xx), the code of the refusal, or `later` (501, the rule let it
through). Columns: nobody (TCP without a credential), stranger (a Linux account
without a service account), other, admin (a superuser who is not the owner),
root, owner; the owner last, because what the owner does may change things.
"""

from __future__ import annotations

from typing import Any

import pytest
from flask import Blueprint, Flask
from unit.serving import IMAGE, make_template

from svc.domain.callers import Caller
from svc.errors import NotAvailable
from svc.web import access
from svc.web import caller as callers
from svc.web.api import BLUEPRINTS

PEOPLE = (None, "stranger", "bob", "boss", "root", "ada")

ANYBODY = "ok ok ok ok ok ok"
EVERYBODY = "unauthenticated account_missing ok ok ok ok"
EVERYBODY_LATER = "unauthenticated account_missing later later later later"
MEMBERS = "unauthenticated account_missing ok ok root_not_allowed ok"
MEMBERS_LATER = "unauthenticated account_missing later later root_not_allowed later"
OWNER = "unauthenticated account_missing not_found not_found root_not_allowed ok"
OWNER_EVEN_OF_ROOT = "unauthenticated account_missing not_found not_found not_found ok"
OWNER_SAID_SO = "unauthenticated account_missing not_found owner_only owner_only ok"
ADMINS = "unauthenticated account_missing admin_only ok ok admin_only"
ADMINS_LATER = "unauthenticated account_missing admin_only later later admin_only"
OTHERS_OWNER = "unauthenticated account_missing admin_only ok ok ok"
NOT_ON_SOCKET = " ".join(["{}", *["not_allowed_on_socket"] * 5])
RUNNING = " workspace_not_stopped"  # the rule let it through

TEMPLATE = {"name": "new", "source": {"type": "registry", "image_ref": IMAGE}}
WORKSPACE = {"name": "new", "template": "open"}

# method, path as registered, [?query], cells, body
ROWS: list[tuple[str, str, str, str, Any]] = [
    ("GET", "/api/health", "", ANYBODY, None),
    ("GET", "/api/version", "", ANYBODY, None),
    ("GET", "/api/openapi.json", "", EVERYBODY, None),
    ("POST", "/api/auth/login", "", NOT_ON_SOCKET.format("later"), {}),
    ("POST", "/api/auth/logout", "", NOT_ON_SOCKET.format("unauthenticated"), {}),
    ("GET", "/api/auth/session", "", NOT_ON_SOCKET.format("unauthenticated"), None),
    ("GET", "/api/users/me", "", EVERYBODY, None),
    ("GET", "/api/users", "", ADMINS, None),
    ("PATCH", "/api/users/<name>", "", EVERYBODY_LATER, {}),
    ("PUT", "/api/users/<name>/password", "", NOT_ON_SOCKET.format("unauthenticated"), {}),
    ("GET", "/api/tokens", "", EVERYBODY_LATER, None),
    ("POST", "/api/tokens", "", EVERYBODY_LATER, {}),
    ("DELETE", "/api/tokens/<ref>", "", EVERYBODY_LATER, None),
    ("GET", "/api/usage/me", "", EVERYBODY_LATER, None),
    ("GET", "/api/servers/hardware", "", EVERYBODY_LATER, None),
    ("GET", "/api/workspaces/capacity", "", MEMBERS_LATER, None),
    ("POST", "/api/workspaces/recommend", "", MEMBERS_LATER, {}),
    ("GET", "/api/workspaces", "", MEMBERS, None),
    ("GET", "/api/workspaces", "?owner=ada", OTHERS_OWNER, None),
    ("POST", "/api/workspaces", "", MEMBERS, WORKSPACE),
    ("POST", "/api/workspaces/setup", "", MEMBERS, WORKSPACE),
    ("GET", "/api/workspaces/<ref>", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>", "?owner=ada", OTHERS_OWNER, None),
    ("PATCH", "/api/workspaces/<ref>", "", OWNER, {"name": "new"}),
    ("DELETE", "/api/workspaces/<ref>", "", OWNER.replace(" ok", RUNNING), None),
    ("DELETE", "/api/workspaces/<ref>", "?owner=ada", OTHERS_OWNER.replace(" ok", RUNNING), None),
    ("POST", "/api/workspaces/<ref>/start", "", OWNER, {}),
    ("POST", "/api/workspaces/<ref>/stop", "", OWNER, {}),
    ("POST", "/api/workspaces/<ref>/stop", "?owner=ada", OTHERS_OWNER, {}),
    ("POST", "/api/workspaces/<ref>/exec", "", OWNER_SAID_SO, {"command": ["id"]}),
    ("GET", "/api/workspaces/<ref>/logs", "", OWNER, None),
    ("GET", "/api/workspaces/<ref>/launchers", "", MEMBERS_LATER, None),
    ("POST", "/api/workspaces/<ref>/launchers/<name>/start", "", MEMBERS_LATER, {}),
    ("POST", "/api/workspaces/<ref>/launchers/<name>/stop", "", MEMBERS_LATER, {}),
    ("GET", "/api/workspaces/<ref>/launchers/<name>/logs", "", MEMBERS_LATER, None),
    ("GET", "/api/workspaces/<ref>/ports", "", MEMBERS_LATER, None),
    ("POST", "/api/workspaces/<ref>/ports", "", MEMBERS_LATER, {}),
    ("DELETE", "/api/workspaces/<ref>/ports/<name>", "", MEMBERS_LATER, None),
    ("GET", "/api/workspaces/<ref>/monitor", "", MEMBERS_LATER, None),
    ("GET", "/api/workspaces/<ref>/monitor/stream", "", MEMBERS_LATER, None),
    ("GET", "/api/workspaces/<ref>/logs/stream", "", MEMBERS_LATER, None),
    ("GET", "/api/workspaces/<ref>/terminal", "", EVERYBODY_LATER, None),
    ("GET", "/api/events", "", EVERYBODY_LATER, None),
    ("GET", "/api/templates", "", EVERYBODY, None),
    ("GET", "/api/templates", "?owner=ada", OTHERS_OWNER, None),
    ("POST", "/api/templates", "", MEMBERS, TEMPLATE),
    ("GET", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/templates/<ref>", "?owner=ada", OTHERS_OWNER, None),
    ("PATCH", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT, {"description": "x"}),
    ("DELETE", "/api/templates/<ref>", "", OWNER_EVEN_OF_ROOT.replace(" ok", " conflict"), None),
    ("POST", "/api/templates/<ref>/enable", "", OWNER_EVEN_OF_ROOT, {}),
    ("POST", "/api/templates/<ref>/disable", "", OWNER_EVEN_OF_ROOT, {}),
    ("POST", "/api/templates/<ref>/clone", "", EVERYBODY_LATER, {}),
    ("GET", "/api/templates/<ref>/dockerfile", "", EVERYBODY_LATER, None),
    ("PUT", "/api/templates/<ref>/dockerfile", "", EVERYBODY_LATER, {}),
    ("GET", "/api/templates/<ref>/export", "", EVERYBODY_LATER, None),
    ("POST", "/api/templates/import", "", EVERYBODY_LATER, {}),
    ("GET", "/api/images", "", MEMBERS, None),
    ("GET", "/api/images/allowlist", "", EVERYBODY, None),
    ("GET", "/api/images/builds", "", MEMBERS_LATER, None),
    ("GET", "/api/images/overview", "", MEMBERS_LATER, None),
    ("POST", "/api/images/prune", "", MEMBERS_LATER, {}),
    ("GET", "/api/templates/<ref>/image", "", OWNER, None),
    ("POST", "/api/templates/<ref>/image/pull", "", OWNER, {}),
    ("POST", "/api/templates/<ref>/image/build", "", MEMBERS_LATER, {}),
    ("DELETE", "/api/templates/<ref>/image", "", MEMBERS_LATER, None),
    ("PUT", "/api/admin/registries", "", ADMINS, {"registries": []}),
    ("GET", "/api/operations/<ref>", "", OWNER_EVEN_OF_ROOT, None),
    ("GET", "/api/operations/<ref>/log", "", OWNER_EVEN_OF_ROOT, None),
    ("POST", "/api/operations/<ref>/cancel", "", OWNER_EVEN_OF_ROOT, {}),
    ("GET", "/api/fs/roots", "", MEMBERS_LATER, None),
    ("GET", "/api/fs/<root>/list", "", MEMBERS_LATER, None),
    ("GET", "/api/fs/<root>/read", "", MEMBERS_LATER, None),
    ("GET", "/api/fs/<root>/download", "", MEMBERS_LATER, None),
    ("GET", "/api/fs/<root>/archive", "", MEMBERS_LATER, None),
    ("PUT", "/api/fs/<root>/file", "", MEMBERS_LATER, {}),
    ("POST", "/api/fs/<root>/mkdir", "", MEMBERS_LATER, {}),
    ("POST", "/api/fs/<root>/move", "", MEMBERS_LATER, {}),
    ("DELETE", "/api/fs/<root>/file", "", MEMBERS_LATER, None),
    ("GET", "/api/admin/audit", "", ADMINS_LATER, None),
    ("GET", "/api/admin/license", "", ADMINS_LATER, None),
    ("GET", "/api/admin/backups", "", ADMINS_LATER, None),
    ("GET", "/api/admin/users", "", ADMINS_LATER, None),
    ("GET", "/api/admin/templates", "", ADMINS_LATER, None),
    ("GET", "/api/audit", "", EVERYBODY_LATER, None),
]  # fmt: skip


def shown(response: Any) -> str:
    if response.status_code < 300:
        return "ok"
    code = response.get_json()["error"]["code"]
    return "later" if code == NotAvailable.code else str(code)


@pytest.mark.parametrize(("method", "path", "query", "cells", "body"), ROWS, ids=lambda part: str(part)[:40])
def test_matrix(
    doors: Any, lab: str, people: Any, method: str, path: str, query: str, cells: str, body: Any
) -> None:
    refs = {"/workspaces/": lab, "/templates/": "tpl-0000base", "/tokens/": "tok-1"}
    if "/operations/" in path:
        refs["/operations/"] = doors.ask("ada", "POST", "/api/templates/base/image/pull").get_json()[
            "operation"
        ]["id"]
    make_template(None, "open")
    ref = next((refs[part] for part in refs if part in path), "")
    real = path.replace("<ref>", ref).replace("<name>", "ada").replace("<root>", "work")
    got = []
    for who in PEOPLE:
        options = {} if body is None else {"json": body}
        got.append(shown(doors.ask(who, method, real + query, **options)))
    assert got == cells.split()


def test_every_route_has_its_row(doors: Any) -> None:
    rows = {(method, path) for method, path, *_ in ROWS}
    routes = {
        (method, rule.rule)
        for rule in doors.apps["unix"].url_map.iter_rules()
        for method in rule.methods - {"HEAD", "OPTIONS"}
    }
    assert routes == rows


def test_nobody_reaches_the_helper_without_a_credential(doors: Any, lab: str) -> None:
    """Every route, unauthenticated: no call but health's own ping."""
    for method, path, query, _, body in ROWS:
        real = path.replace("<ref>", lab).replace("<name>", "ada").replace("<root>", "work")
        for who in (None, "stranger", "half", "gone"):
            doors.ask(who, method, real + query, **({} if body is None else {"json": body}))
    assert set(doors.far.verbs()) == {"helper.ping"}


def test_an_app_with_a_route_without_a_rule_does_not_start() -> None:
    bare = Blueprint("bare", __name__)
    bare.add_url_rule("/bare", "bare", lambda: "")
    app = Flask("x", static_folder=None)
    for blueprint in (*BLUEPRINTS, bare):
        app.register_blueprint(blueprint)
    with pytest.raises(RuntimeError, match="/bare has no access rule"):
        access.routes_of(app)


@pytest.mark.parametrize(
    "path",
    [
        "/api/events",
        "/api/workspaces/lab/monitor/stream",
        "/api/workspaces/lab/logs/stream",
        "/api/workspaces/lab/terminal",
        "//api//events/",
    ],
)
def test_svc_api_gets_no_streams(doors: Any, lab: str, path: str) -> None:
    options = {"environ": {"PATH_INFO": path}, "headers": {"X-Svc-Via": "api"}}
    assert shown(doors.ask("ada", "GET", "/", **options)) == "streaming_not_supported"
    assert shown(doors.ask("ada", "GET", "/", environ={"PATH_INFO": path})) == "later"


def test_svc_api_makes_no_credential(doors: Any) -> None:
    headers = {"X-Svc-Via": "api"}
    assert shown(doors.ask("ada", "POST", "/api/tokens", json={}, headers=headers)) == "not_allowed_on_socket"
    assert shown(doors.ask("ada", "GET", "/api/tokens", headers=headers)) == "later"


@pytest.mark.parametrize(
    "path",
    ["//api/auth/login", "/api//auth///login", "/api/auth/login/", "/api/auth/login//", "///api/auth/login"],
)
def test_login_on_the_socket_however_it_is_spelt(doors: Any, path: str) -> None:
    for who in ("ada", "root", "stranger"):
        response = doors.ask(who, "POST", "/", json={}, environ={"PATH_INFO": path})
        assert shown(response) == "not_allowed_on_socket"
    for path_ in ("/API/auth/login", "/api/auth/login.", "/api/./auth/login", "/api/auth/login%00"):
        response = doors.ask("ada", "POST", "/", json={}, environ={"PATH_INFO": path_})
        assert shown(response) == "not_found"


def test_socket_only(doors: Any, monkeypatch: pytest.MonkeyPatch, people: Any) -> None:
    """What only the host socket takes, for a credential that will exist: told apart from "who are you"."""

    def session(kind: str, superuser: bool) -> Any:
        def look(_environ: Any, helper: Any, rid: str) -> Caller:
            return Caller(kind, people["boss"].id, "boss", 2003, superuser, rid, "192.0.2.1", helper)

        return (look,)

    def ask(method: str, path: str, **options: Any) -> str:
        return shown(doors.ask(None, method, path, **options))

    monkeypatch.setattr(callers, "CREDENTIALS", session("session", True))
    assert ask("POST", "/api/tokens", json={}) == "socket_only"
    assert ask("PUT", "/api/admin/registries", json={"registries": []}) == "socket_only"
    assert ask("GET", "/api/users") == "ok"
    monkeypatch.setattr(callers, "CREDENTIALS", session("pat", True))
    assert ask("GET", "/api/users/me") == "ok"
    for method, path in (
        ("POST", "/api/tokens"), ("GET", "/api/tokens"), ("GET", "/api/users"), ("GET", "/api/admin/audit"),
        ("GET", "/api/fs/roots"), ("GET", "/api/audit"), ("PATCH", "/api/users/boss"),
    ):  # fmt: skip
        assert ask(method, path) == "pat_not_allowed"
    # A token acts "as an ordinary user", whoever owns it.
    assert ask("GET", "/api/workspaces?owner=ada") == "pat_not_allowed"
