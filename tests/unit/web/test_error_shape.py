"""One error body for every way to fail, and what every answer carries."""

from __future__ import annotations

import json
import re
from typing import Any

import peewee
import pytest
from unit.serving import MISSING, Visitor

from svc import errors, limits
from svc.db.connect import database
from svc.settings import Settings
from svc.web import app as web_app

KEYS = {"code", "message", "hint", "fields", "details", "retryable", "request_id"}


def checked(response: Any, status: int, code: str) -> dict[str, Any]:
    """The inner error of an answer that has the one shape."""
    body = response.get_json()
    assert set(body) == {"error"}
    error: dict[str, Any] = body["error"]
    assert set(error) == KEYS
    assert (response.status_code, error["code"]) == (status, code), error
    assert error["request_id"] == response.headers["X-Request-Id"]
    assert error["message"]
    assert "Traceback" not in response.text
    assert re.fullmatch(r"application/json", response.headers["Content-Type"])
    for field in error["fields"]:
        assert set(field) == {"field", "code", "message"}
    if error["retryable"]:
        assert int(response.headers["Retry-After"]) >= 1
    return error


def post(doors: Any, path: str, data: bytes | str, content_type: str = "application/json") -> Any:
    return doors.ask("ada", "POST", path, data=data, content_type=content_type)


def test_every_answer_carries_its_headers(doors: Any, lab: str) -> None:
    ids = set()
    for who, path in (
        ("ada", "/api/workspaces"),
        ("ada", "/api/nope"),
        (None, "/api/health"),
        (None, "/api/users"),
    ):
        response = doors.ask(who, "GET", path, headers={"X-Request-Id": "mine"})
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        ids.add(response.headers["X-Request-Id"])
    assert len(ids) == 4
    assert "mine" not in ids


def test_unknown_path_and_method(doors: Any) -> None:
    checked(doors.ask("ada", "GET", "/api/nothing"), 404, "not_found")
    checked(doors.ask(None, "GET", "/"), 404, "not_found")
    response = doors.ask("ada", "PUT", "/api/workspaces", json={})
    checked(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "GET, HEAD, POST"
    checked(doors.ask(None, "OPTIONS", "/api/workspaces"), 405, "method_not_allowed")
    assert doors.ask("ada", "HEAD", "/api/workspaces").status_code == 200


def test_unauthenticated_is_one_text(doors: Any) -> None:
    response = doors.ask(None, "GET", "/api/users/me")
    error = checked(response, 401, "unauthenticated")
    assert response.headers["WWW-Authenticate"] == "Bearer"
    other = checked(doors.ask(None, "GET", "/api/workspaces/ws-0000000a"), 401, "unauthenticated")
    assert error["message"] == other["message"]


DEEP = b"[" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"{", b"nonsense", b"\xff\xfe", b'"text"', b"[]", b"5", b"null", b'{"name": "a", "name": "b"}',
        b'{"resources": {"cpu_limit": 1, "cpu_limit": 2}}', b'{"a": NaN}', b'{"a": Infinity}',
        b'{"a": -Infinity}',
        b'{"a": 1e400}', b'{"a": "\\ud800"}', b'{"\\udfff": 1}', b'{"a": ' + b"9" * 5000 + b"}", DEEP,
        b'{"a":' * 40 + b"1" + b"}" * 40, b'{"a": "' + b"[" * 50 + b'"} x', b"{} {}", b'{"a": 1,}',
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda data: data[:24].decode("latin-1"),
)  # fmt: skip
def test_bad_json(doors: Any, data: bytes) -> None:
    error = checked(post(doors, "/api/workspaces", data), 400, "invalid_json")
    assert len(error["message"]) < 200


def test_bad_content_type(doors: Any) -> None:
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        checked(post(doors, "/api/workspaces", b"{}", kind), 400, "invalid_json")


def test_too_large_a_body(doors: Any) -> None:
    data = b'{"name": "' + b"a" * limits.BODY_MAX + b'"}'
    error = checked(post(doors, "/api/workspaces", data), 413, "too_large")
    assert error["details"] == {"limit": limits.BODY_MAX}


WANTED = {"name": "new", "template": "base"}


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"name": None}, "name", "null"),
        ({"name": "A"}, "name", "invalid"),
        ({"name": "a" * 10_000}, "name", "invalid"),
        ({"name": "-a"}, "name", "invalid"),
        ({"name": "a\n"}, "name", "invalid"),
        ({"name": "$(id)"}, "name", "invalid"),
        ({"name": "💥"}, "name", "invalid"),
        ({"name": "capacity"}, "name", "invalid"),
        ({"name": 5}, "name", "invalid"),
        ({"template": ""}, "template", "invalid"),
        ({"surprise": 1}, "surprise", "unknown_key"),
        ({"resources": {"surprise": 1}}, "resources.surprise", "unknown_key"),
        ({"resources": []}, "resources", "invalid"),
        ({"resources": {"cpu_limit": "1"}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"cpu_limit": True}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"cpu_limit": 0}}, "resources.cpu_limit", "invalid"),
        ({"resources": {"memory_bytes": 2**64}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"memory_bytes": 1.0}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"memory_bytes": -1}}, "resources.memory_bytes", "invalid"),
        ({"resources": {"gpu_count": 999}}, "resources.gpu_count", "invalid"),
        ({"resources": {"gpu_mode": "greedy"}}, "resources.gpu_mode", "invalid"),
        ({"restart_on_boot": 1}, "restart_on_boot", "invalid"),
        ({"restart_on_boot": "true"}, "restart_on_boot", "invalid"),
        ({"display_name": "a\x1b[31m"}, "display_name", "invalid"),
        ({"display_name": "a" * 129}, "display_name", "invalid"),
        ({"env": [{"name": "A=B", "value": ""}]}, "env.0.name", "invalid"),
        ({"env": [{"name": "A", "value": "\0"}]}, "env.0.value", "invalid"),
        ({"env": [{"name": "A"}]}, "env.0.value", "required"),
        ({"env": [{"name": "A", "value": ""}, {"name": "A", "value": ""}]}, "env.1.name", "invalid"),
        ({"env": [{"name": f"A{n}", "value": ""} for n in range(65)]}, "env", "invalid"),
        ({"env": {"A": "B"}}, "env", "invalid"),
    ],
    ids=str,
)
def test_bad_values(doors: Any, lab: str, change: dict[str, Any], field: str, code: str) -> None:
    response = doors.ask("ada", "POST", "/api/workspaces", json=WANTED | change)
    error = checked(response, 422, "validation_failed")
    assert (error["fields"][0]["field"], error["fields"][0]["code"]) == (field, code)
    assert doors.far.verbs() == []


def test_missing_keys_are_all_named(doors: Any) -> None:
    error = checked(doors.ask("ada", "POST", "/api/workspaces"), 422, "validation_failed")
    assert {(row["field"], row["code"]) for row in error["fields"]} == {
        ("name", "required"),
        ("template", "required"),
    }


@pytest.mark.parametrize("timeout_s", [0, -1, 601, 1.5, "5", True, None, 10**30])
def test_exec_timeouts(doors: Any, lab: str, timeout_s: Any) -> None:
    response = doors.ask(
        "ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["x"], "timeout_s": timeout_s}
    )
    assert checked(response, 422, "validation_failed")["fields"][0]["field"] == "timeout_s"


@pytest.mark.parametrize(
    "command",
    [[], [""], "ls", [5], ["a\0b"], ["x"] * 257, ["x" * (48 * 1024 + 1)], ["x" * 25_000, "y" * 25_000], None],
    ids=lambda command: str(command)[:20],
)
def test_exec_commands(doors: Any, lab: str, command: Any) -> None:
    response = doors.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
    assert checked(response, 422, "validation_failed")["fields"][0]["field"].startswith("command")
    assert doors.far.verbs() == []


def test_exec_as_large_as_allowed_fits_one_call(doors: Any, lab: str) -> None:
    command = ['"' * 12_000, "\x01" * 6_000, "ü" * 8_000, "x" * 1_000]
    response = doors.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": command})
    assert response.status_code in (200, 413)
    if response.status_code == 413:
        checked(response, 413, "too_large")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=-1", "limit=1.5", "limit=x", "limit=%C2%B2", "limit=",
        "limit=1&limit=2",
        "offset=-1", "offset=99999999999999999999", "sort=nope", "sort=name;drop", "status=nope",
        "status=running,", "status=running,nope", "surprise=1", "owner=Root", "owner=a%00b", "q=%00",
        "q=" + "a" * 129,
    ],
)  # fmt: skip
def test_bad_queries(doors: Any, query: str) -> None:
    checked(doors.ask("ada", "GET", f"/api/workspaces?{query}"), 422, "validation_failed")


def test_a_query_where_none_is_taken(doors: Any, lab: str) -> None:
    checked(doors.ask("ada", "GET", "/api/users/me?x=1"), 422, "validation_failed")
    checked(
        doors.ask("ada", "POST", f"/api/workspaces/{lab}/start?owner=ada", json={}), 422, "validation_failed"
    )


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
def test_engine_failures(doors: Any, lab: str, answer: Any, status: int, code: str) -> None:
    doors.far.answers["ctr.exec"] = answer
    response = doors.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]})
    checked(response, status, code)


def test_a_dead_helper(doors: Any, lab: str) -> None:
    doors.far.theirs.shutdown(2)
    checked(doors.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={}), 503, "engine_unavailable")
    response = doors.ask(None, "GET", "/api/health")
    assert (response.status_code, response.get_json()["status"]) == (503, "degraded")
    assert response.get_json()["db"] == "ok"
    assert doors.ask("ada", "GET", "/api/workspaces").status_code == 200


def test_wrong_states(doors: Any, lab: str) -> None:
    error = checked(doors.ask("ada", "DELETE", f"/api/workspaces/{lab}"), 409, "workspace_not_stopped")
    assert error["hint"] == "svc ws stop lab"
    doors.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={})
    response = doors.ask("ada", "POST", f"/api/workspaces/{lab}/exec", json={"command": ["id"]})
    assert checked(response, 409, "workspace_not_running")["hint"] == "svc ws start lab"


def test_a_missing_image(doors: Any, lab: str) -> None:
    doors.far.answers["image.inspect"] = MISSING
    response = doors.ask("ada", "POST", "/api/workspaces", json=WANTED)
    assert (response.status_code, response.get_json()["image_status"]) == (201, "missing")
    assert response.headers["Location"] == f"/api/workspaces/{response.get_json()['id']}"
    response = doors.ask("ada", "POST", "/api/workspaces/new/start", json={})
    assert checked(response, 409, "image_missing")["hint"] == "svc image pull tpl-0000base --wait"


def test_a_reserved_route_says_so(doors: Any) -> None:
    checked(doors.ask("ada", "GET", "/api/usage/me?x=1"), 501, "not_available")


def test_what_nobody_foresaw_is_logged_and_not_shown(
    doors: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError("secret words")

    monkeypatch.setattr("svc.web.api.workspaces.workspaces.page_of", broken)
    error = checked(doors.ask("ada", "GET", "/api/workspaces"), 500, "internal_error")
    assert "secret" not in json.dumps(error)
    line = json.loads(capsys.readouterr().err.splitlines()[0])
    assert line["rid"] == error["request_id"]
    assert "secret words" in line["error"]
    assert "Traceback" in line["trace"]


def test_a_failure_before_the_request_is_admitted(doors: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of the other family on a door is a bug that answers nobody."""
    checked(
        doors.ask("ada", "GET", "/api/health", environ={"gunicorn.socket": Visitor()}), 500, "internal_error"
    )


def test_a_full_disk(doors: Any, lab: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = database.execute_sql

    def full(sql: str, *rest: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE")):
            raise peewee.OperationalError("database or disk is full")
        return real(sql, *rest)

    monkeypatch.setattr(database, "execute_sql", full)
    checked(doors.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={}), 507, "storage_full")
    assert doors.ask("ada", "GET", "/api/workspaces").status_code == 200
    assert doors.far.verbs() == []


def test_the_log_has_requests_and_no_queries(doors: Any, capsys: pytest.CaptureFixture[str]) -> None:
    app = web_app.build(Settings(environ={}, file={}), doors.far.helper, door="tcp", dev=False)
    client = app.test_client()
    path = "/api/workspaces%0A{forged}?token=svc_pat_secret"
    client.get(path, environ_overrides={"gunicorn.socket": Visitor()})
    text = capsys.readouterr().err
    line = json.loads(text)
    assert (line["process"], line["status"], line["code"]) == ("tcp", 404, "not_found")
    assert line["path"] == "/api/workspaces\n{forged}"
    assert "secret" not in text


def test_every_code_is_documented_once() -> None:
    assert len({row.code for row in errors.table()}) == len(errors.table())
