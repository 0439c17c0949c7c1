"""Administration over HTTP: the audit, who sees which rows; the templates that await a review."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import caller_of, checked

from svc.domain import host_reports
from svc.domain.accounts import sessions, tokens
from svc.domain.audit import audit, chain
from svc.host import ids

OWN = {
    "id", "at", "user", "via", "address", "action", "target", "target_name", "target_owner", "outcome",
    "request_id", "detail",
}  # fmt: skip


@pytest.fixture
def rows(listeners: Any, people: Any) -> None:
    """Three rows of ada's, two of bob's, one of nobody's."""
    for name, action in (("ada", "workspace.start"), ("bob", "token.create"), ("ada", "workspace.stop")):
        audit.add(
            caller_of(people[name], listeners.far, rid=f"req-{action}"), action, "thing-1", "ok", count=1
        )
    with audit.audited(caller_of(people["bob"], listeners.far), "workspace.exec", "thing-2"):
        pass
    nobody = audit.Actor(None, "(unknown)", "session", "192.0.2.1")
    audit.append(nobody, "auth.login", "(unknown)", "unauthenticated", "req-x", {})


def test_everybody_sees_their_own_alone(listeners: Any, rows: None) -> None:
    for who, actions in (
        ("ada", ["workspace.stop", "workspace.start"]),
        ("bob", ["workspace.exec", "workspace.exec", "token.create"]),
        ("boss", []),
        ("root", []),
    ):
        page = listeners.ask(who, "GET", "/api/audit").get_json()
        assert ([row["action"] for row in page["items"]], page["total"]) == (actions, len(actions))
        assert all(set(row) == OWN and row["user"] == who for row in page["items"])


def test_administrators_see_all_with_the_chain(listeners: Any, people: Any, rows: None) -> None:
    _, secrets = sessions.begin(people["boss"].id, "192.0.2.1")
    for answer in (
        listeners.ask("boss", "GET", "/api/admin/audit"),
        listeners.ask("root", "GET", "/api/admin/audit"),
        listeners.ask(None, "GET", "/api/admin/audit", session=secrets),
    ):
        page = answer.get_json()
        assert (page["total"], page["items"][0]["action"]) == (6, "auth.login")
        assert set(page["items"][0]) == OWN | {"hash"}
        assert page["items"][0]["hash"] == chain.hash_of(6)


def test_a_token_reaches_neither(listeners: Any, people: Any, rows: None) -> None:
    for name in ("ada", "boss", "root"):
        secret = tokens.create(caller_of(people[name], listeners.far), "ci")["secret"]
        for path in ("/api/audit", "/api/admin/audit"):
            answer = listeners.ask(None, "GET", path, headers={"Authorization": f"Bearer {secret}"})
            checked(answer, 403, "pat_not_allowed")


def test_another_user_is_no_filter_of_ones_own(listeners: Any, rows: None) -> None:
    for query in ("?user=bob", "?owner=bob", "?owner_id=3"):
        checked(listeners.ask("ada", "GET", f"/api/audit{query}"), 422, "validation_failed")
    checked(listeners.ask("ada", "GET", "/api/admin/audit?user=bob"), 403, "admin_only")


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("user=ada", [3, 1]),
        ("user=(unknown)", [6]),
        ("action=workspace", [5, 4, 3, 1]),
        ("action=workspace.exec&outcome=begun", [4]),
        ("request_id=req-x", [6]),
        ("q=THING-2", [5, 4]),
        ("q=192.0.2", [6]),
        ("sort=at&limit=2", [1, 2]),
        ("limit=2&offset=1", [5, 4]),
        ("since=2020-01-01&until=2999-12-31T23:59:59%2B02:00", [6, 5, 4, 3, 2, 1]),
        ("until=2020-01-01T00:00:00Z", []),
        ("since=0001-01-01T00:00:00.5Z&limit=1", [6]),
    ],
)
def test_filters(listeners: Any, rows: None, query: str, ids: list[int]) -> None:
    page = listeners.ask("boss", "GET", f"/api/admin/audit?{query}").get_json()
    assert [row["id"] for row in page["items"]] == ids


@pytest.mark.parametrize(
    "query",
    ["since=yesterday", "since=2026-01-31T12:00:00", "until=2026-13-01", "until=0001-01-01T00:00:00%2B14:00",
     "sort=hash", "status=ok", "action=" + "a" * 65, "user=a%0Ab", "limit=0",
     "since=2026-01-31T12:00:00+02:00"],
)  # fmt: skip
def test_filters_that_are_none(listeners: Any, rows: None, query: str) -> None:
    [field] = checked(listeners.ask("boss", "GET", f"/api/admin/audit?{query}"), 422, "validation_failed")[
        "fields"
    ]
    assert field["field"] == query.partition("=")[0]


def test_what_is_done_over_http_is_on_record_under_its_request(listeners: Any, people: Any) -> None:
    answer = listeners.ask("ada", "PATCH", "/api/users/ada", json={"display_name": "Ada"})
    [row] = listeners.ask("ada", "GET", "/api/audit").get_json()["items"]
    assert (row["request_id"], row["via"], row["detail"]) == (
        answer.headers["X-Request-Id"], "socket", {"display_name": "Ada"},
    )  # fmt: skip
    assert row["at"].endswith("Z")


# --- templates that await a review --------------------------------------------------------------


def test_what_awaits_a_review_is_listed_with_what_was_found(listeners: Any) -> None:
    body = {
        "name": "recipe", "scope": "global", "ports": [{"name": "web", "container_port": 8888}],
        "source": {"type": "registry", "image_ref": "elsewhere.example/team/lab:1"},
    }  # fmt: skip
    created = listeners.ask("boss", "POST", "/api/templates", json=body).get_json()
    page = listeners.ask("boss", "GET", "/api/admin/templates").get_json()
    assert (page["total"], [item["id"] for item in page["items"]]) == (1, [created["id"]])
    assert [finding["code"] for finding in page["items"][0]["findings"]] == [
        "registry_not_allowed",
        "ports",
        "image_not_pinned",
    ]
    pinned = {"source": {"image_ref": f"registry.example/team/lab@sha256:{'1' * 64}"}}
    listeners.ask("boss", "PATCH", f"/api/templates/{created['id']}", json=pinned)
    [item] = listeners.ask("root", "GET", "/api/admin/templates?q=recipe").get_json()["items"]
    assert [(found["code"], found["diff"]) for found in item["findings"]] == [
        ("ports", None),
        ("changed", None),
    ]
    record = listeners.ask("boss", "GET", f"/api/templates/{created['id']}").get_json()
    assert '+    "image_ref": "registry.example/team/lab@sha256:' in record["findings"][-1]["diff"]
    assert listeners.ask("boss", "POST", f"/api/templates/{created['id']}/enable", json={}).status_code == 200
    assert listeners.ask("boss", "GET", "/api/admin/templates").get_json()["items"] == []


def test_only_administrators_see_what_waits(listeners: Any) -> None:
    checked(listeners.ask("ada", "GET", "/api/admin/templates"), 403, "admin_only")
    checked(listeners.ask("boss", "GET", "/api/admin/templates?owner=ada"), 422, "validation_failed")


# --- reports ------------------------------------------------------------------------------


def report(listeners: Any, kind: Any, items: list[Any], state_dir: str) -> None:
    """Write a report as root does."""
    path = Path(host_reports.path_of(state_dir, kind))
    path.parent.mkdir(exist_ok=True)
    document = {"format": 1, "report": kind.name, "written_at": ids.now(), "items": items}
    path.write_text(json.dumps(document))
    path.chmod(0o640)


@pytest.fixture
def state(listeners: Any, tmp_path: Path) -> str:
    configured(state_dir=str(tmp_path), registries_path=str(tmp_path / "registries.json"))
    return str(tmp_path)


REPORTS = {
    "backups": host_reports.BACKUPS,
    "recovery-sets": host_reports.RECOVERY_SETS,
    "host": host_reports.HOST,
}
VALUES = {str: "ok", int: 7, bool: True, type(None): None}


@pytest.mark.parametrize("path", REPORTS)
def test_reports_and_their_age(listeners: Any, state: str, path: str) -> None:
    kind = REPORTS[path]
    empty = listeners.ask("boss", "GET", f"/api/admin/{path}").get_json()
    assert (empty["items"], empty["report"]["written_at"]) == ([], None)
    assert empty["report"]["command"].startswith("sudo svc admin ")
    item = {name: VALUES[types[0]] for name, types in kind.item.items()} | (
        {"created_at": ids.now()} if "created_at" in kind.item else {}
    )
    report(listeners, kind, [item], state)
    page = listeners.ask("boss", "GET", f"/api/admin/{path}").get_json()
    assert (page["items"], page["total"], page["report"]["old"]) == ([item], 1, False)
    checked(listeners.ask("boss", "GET", f"/api/admin/{path}?sort=nothing"), 422, "validation_failed")


def test_updates(listeners: Any, state: str) -> None:
    assert listeners.ask("root", "GET", "/api/admin/updates").get_json()["updates"] is None
    item = {name: VALUES[types[0]] for name, types in host_reports.UPDATES.item.items()}
    item |= {"checked_at": None, "applied_at": None, "available": "1.2"}
    report(listeners, host_reports.UPDATES, [item], state)
    assert listeners.ask("root", "GET", "/api/admin/updates").get_json()["updates"] == item


def test_the_state_of_the_chain(listeners: Any, state: str, rows: None) -> None:
    body = listeners.ask("boss", "GET", "/api/admin/audit/chain").get_json()
    assert (body["level"], body["remedy"]) == (None, "sudo svc admin doctor")
    assert body["head"] == {"id": 6, "hash": chain.hash_of(6)}
    assert body["archived"] == {"id": 0, "hash": ""}
    finding = {
        "code": "audit_chain",
        "level": "fail",
        "found": "row 3 is not what was written",
        "remedy": "x",
    }
    report(listeners, host_reports.HOST, [finding], state)
    body = listeners.ask("boss", "GET", "/api/admin/audit/chain").get_json()
    assert (body["level"], body["found"]) == ("fail", "row 3 is not what was written")


def test_accounts_with_their_usage(listeners: Any, people: Any, lab: str) -> None:
    tokens.create(caller_of(people["ada"], listeners.far), "ci")
    sessions.begin(people["ada"].id, "192.0.2.1")
    page = listeners.ask("boss", "GET", "/api/admin/users?sort=name").get_json()
    assert page["total"] == 6
    ada = next(item for item in page["items"] if item["name"] == "ada")
    used = {key: ada[key] for key in ("workspaces", "running", "gpus", "templates", "sessions", "tokens")}
    assert used == {"workspaces": 1, "running": 1, "gpus": 0, "templates": 1, "sessions": 1, "tokens": 1}
    assert (ada["status"], ada["image_bytes"], ada["last_login_at"]) == ("READY", 0, None)
    assert ada["last_action_at"]
    bob = next(item for item in page["items"] if item["name"] == "bob")
    assert (bob["workspaces"], bob["last_action_at"]) == (0, None)
    assert listeners.ask("boss", "GET", "/api/admin/users?q=nobody-at-all").get_json()["items"] == []
