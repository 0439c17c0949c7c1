"""What surrounds every request: ids, headers, the log, the helper's call."""

from __future__ import annotations

import io
import json
import os
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import Visitor, checked

from svc.db import condition, connect, faults, migrate, reserve
from svc.db.connect import database
from svc.domain import configuration, operations
from svc.domain.accounts import keys, sessions, users
from svc.domain.licence import trial
from svc.errors import SvcError
from svc.host.ids import after, now
from svc.host.secret import ensure_secret
from svc.settings import Settings
from svc.web import access
from svc.web import app as web_app


def test_every_answer_carries_its_headers(listeners: Any, lab: str) -> None:
    ids = set()
    for who, path in (
        ("ada", "/api/workspaces"),
        ("ada", "/api/nope"),
        (None, "/api/health"),
        (None, "/api/users"),
    ):
        response = listeners.ask(who, "GET", path, headers={"X-Request-Id": "mine"})
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["X-Content-Type-Options"] == "nosniff"
        ids.add(response.headers["X-Request-Id"])
    assert len(ids) == 4
    assert "mine" not in ids


HSTS = "Strict-Transport-Security"


@pytest.mark.parametrize("host", ["svc.example", "SVC.example:24680"])
def test_browsers_use_https_alone_for_the_hosts_name(listeners: Any, host: str) -> None:
    for path in ("/api/health", "/api/users", "/nope"):
        answer = listeners.ask(None, "GET", path, headers={"Host": host})
        assert answer.headers[HSTS] == "max-age=31536000"
    assert HSTS not in listeners.ask(None, "GET", "/api/health", dev=True, headers={"Host": host}).headers
    assert HSTS not in listeners.ask("ada", "GET", "/api/workspaces").headers


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:24680", "LOCALHOST:1", "127.0.0.1:24680", "[::1]:1"]
)
def test_plain_http_stays_possible_on_the_loopback_interface(listeners: Any, host: str) -> None:
    """HSTS holds for every port of a name: workspace ports are reached as http://localhost:PORT."""
    assert HSTS not in listeners.ask(None, "GET", "/api/health", headers={"Host": host}).headers


def test_a_failure_before_the_request_is_admitted(listeners: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection of the other family on a listener is a bug that answers nobody."""
    checked(
        listeners.ask("ada", "GET", "/api/health", environ={"gunicorn.socket": Visitor()}),
        500,
        "internal_error",
    )


class SlowBody(io.BytesIO):
    """A body during whose arrival something happens."""

    def __init__(self, content: bytes, meanwhile: Callable[[], object]) -> None:
        super().__init__(content)
        self.meanwhile = meanwhile

    def readinto(self, buffer: Any) -> int:
        self.meanwhile()
        return super().readinto(buffer)

    def read(self, size: int | None = -1) -> bytes:
        self.meanwhile()
        return super().read(size)


@pytest.mark.parametrize("column", ["disabled = 1", "superuser = 0"])
def test_a_slow_body_outlasts_no_right(
    listeners: Any, people: dict[str, Any], column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator who is shut out while the body comes in does not let themself in with it."""
    monkeypatch.setattr(access, "SLOW_BODY_S", -1)
    _, secrets = sessions.begin(people["boss"].id, "192.0.2.1")
    content = b'{"disabled": false}'

    def meanwhile() -> None:
        database.execute_sql(f"UPDATE users SET {column} WHERE name = 'boss'")

    for way in ({"who": None, "session": secrets}, {"who": "boss"}):
        database.execute_sql("UPDATE users SET disabled = 0, superuser = 1 WHERE name = 'boss'")
        response = listeners.ask(
            method="PATCH", path="/api/users/gone", content_type="application/json",
            input_stream=SlowBody(content, meanwhile), content_length=len(content), **way,
        )  # fmt: skip
        assert response.status_code in (403, 404), response.text
    assert users.get("gone").disabled


def test_a_slow_body_outlasts_no_session(listeners: Any, people: dict[str, Any]) -> None:
    session_id, secrets = sessions.begin(people["ada"].id, "192.0.2.1")
    content = b'{"display_name": "Ada"}'

    def meanwhile() -> None:
        sessions.end(session_id)
        time.sleep(2 * access.SLOW_BODY_S)

    response = listeners.ask(
        None, "PATCH", "/api/users/ada", session=secrets, content_type="application/json",
        input_stream=SlowBody(content, meanwhile), content_length=len(content),
    )  # fmt: skip
    checked(response, 401, "unauthenticated")
    assert users.get("ada").display_name == ""


def test_the_log_has_requests_and_no_queries(listeners: Any, capsys: pytest.CaptureFixture[str]) -> None:
    app = web_app.build(Settings(environ={}, file={}), listeners.far.helper, listener="tls", dev=False)
    client = app.test_client()
    path = "/api/workspaces%0A{forged}?token=svc_pat_secret"
    client.get(path, environ_overrides={"gunicorn.socket": Visitor()})
    text = capsys.readouterr().err
    line = json.loads(text)
    assert (line["process"], line["status"], line["code"]) == ("tls", 404, "not_found")
    assert line["path"] == "/api/workspaces?{forged}"
    assert "secret" not in text


def test_version_and_health(listeners: Any) -> None:
    version = listeners.ask(None, "GET", "/api/version").get_json()
    assert set(version) == {"version", "commit", "api", "schema"}
    assert (version["api"], version["schema"]) == ("1", migrate.latest())
    for _ in range(3):
        assert listeners.ask(None, "GET", "/api/health").get_json() == {
            "status": "ok",
            "db": "ok",
            "helper": "ok",
            "license": "ok",
        }
    assert listeners.far.verbs() == ["helper.ping"]


def test_health_and_the_callers_account_tell_of_the_licence(
    listeners: Any, people: Any, tmp_path: Path
) -> None:
    """A lapsed licence is a notice: the service works. Only administrators read what to do."""
    for began, code in (
        ("2020-01-01T00:00:00.000Z", "license_lapsed"),
        (after(now(), -80 * 86400), "license_ending"),
    ):
        configured(state_dir=str(tmp_path))
        trial.write_file(str(tmp_path), began)
        health = listeners.ask(None, "GET", "/api/health")
        assert (health.status_code, health.get_json()["status"]) == (200, "ok")
        assert health.get_json()["license"] == code
        found = {
            who: listeners.ask(who, "GET", "/api/users/me").get_json()["notices"] for who in ("ada", "boss")
        }
        assert (found["ada"], [notice["code"] for notice in found["boss"]]) == ([], [code])


def test_calls_carry_the_peer_and_the_request_id(listeners: Any, lab: str) -> None:
    response = listeners.ask("ada", "POST", "/api/workspaces/lab/exec", json={"command": ["id"]})
    assert response.get_json()["stdout"] == "aGkK"
    call = listeners.far.calls[0]
    assert (call.user, call.rid) == ("ada", response.headers["X-Request-Id"])
    assert listeners.far.fd_counts == [
        2,
        2,
    ]  # reply path and caller's connection, for the check and the call
    row = database.execute_sql("SELECT via, request_id, user_name FROM audit").fetchone()
    assert row == ("socket", call.rid, "ada")


def test_a_mount_point_from_outside_is_refused(listeners: Any) -> None:
    environ = {"SCRIPT_NAME": "/x", "PATH_INFO": "/api/auth/login"}
    assert listeners.ask("ada", "POST", "/", json={}, environ=environ).status_code == 400


def test_the_worker_is_woken_by_what_is_queued(
    settings: Settings, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operations, "wake", operations.wake)
    connect.close_database()
    woken: list[int] = []
    ensure_secret(settings.secret_file)
    app = web_app.build(settings, None, listener="unix", dev=False)
    web_app.begin(app, settings, None, dev=False, wake=lambda: woken.append(1))  # type: ignore[arg-type]
    assert connect.database.is_closed()
    operations.wake()
    assert woken == [1]
    assert configuration.current.registries_path == f"{settings.state_dir}/registries.json"


def test_dev_forgets_its_signing_secret(settings: Settings, db: str) -> None:
    """ "In `--dev` mode the JWT signing secret is ephemeral"; passwords outlive the process."""
    connect.close_database()
    ensure_secret(settings.secret_file)

    def created(dev: bool) -> tuple[bytes, bytes]:
        app = web_app.build(settings, None, listener="tls", dev=dev)
        web_app.begin(app, settings, None, dev=dev)  # type: ignore[arg-type]
        return keys.derived(b"session cookies"), keys.secret()

    lasting, first, second = created(False), created(True), created(True)
    assert created(False) == lasting
    assert len({lasting[0], first[0], second[0]}) == 3
    assert lasting[1] == first[1] == second[1]


@pytest.mark.parametrize(
    ("fault", "code"),
    [(faults.damaged("page 30"), "database_damaged"), (faults.failed("EIO"), "storage_failed")],
)
def test_health_says_what_is_wrong_with_the_database(
    listeners: Any, fault: SvcError, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "_seen", {})
    condition.note(database.path, fault)
    response = listeners.ask(None, "GET", "/api/health")
    found = response.get_json()
    assert (response.status_code, found["status"], found["db"], found["helper"]) == (
        503,
        "degraded",
        code,
        "ok",
    )
    assert (found["error"]["code"], found["error"]["hint"]) == (code, "sudo svc admin doctor")
    condition.clear(database.path, code)
    assert listeners.ask(None, "GET", "/api/health").status_code == 200


def test_health_finds_a_full_disk_and_one_that_does_not_write(
    listeners: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as full:
        full.setattr(reserve, "room", lambda _path: 0)
        assert listeners.ask(None, "GET", "/api/health").get_json()["db"] == "storage_full"
    os.mkdir(reserve.path_of(database.path))
    assert listeners.ask(None, "GET", "/api/health").get_json()["db"] == "storage_failed"
    os.rmdir(reserve.path_of(database.path))
    assert listeners.ask(None, "GET", "/api/health").status_code == 503, "kept for some seconds"


def test_a_damaged_database_answers_in_its_own_words(
    listeners: Any, lab: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "_seen", {})
    condition.note(database.path, faults.damaged("page 30"))
    checked(listeners.ask("ada", "POST", f"/api/workspaces/{lab}/stop", json={}), 503, "database_damaged")
    assert listeners.ask("ada", "GET", "/api/workspaces").status_code == 200
    condition.clear(database.path, "database_damaged")


def test_an_error_of_sqlite_in_a_view_is_no_internal_error(
    listeners: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(condition, "_seen", {})

    def broken(*_: Any, **__: Any) -> None:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("PRAGMA page_size")
            connection.execute("PRAGMA max_page_count = 1")
            connection.execute("CREATE TABLE t AS SELECT zeroblob(1000000)")

    monkeypatch.setattr("svc.web.api.workspaces.workspaces.page_of", broken)
    checked(listeners.ask("ada", "GET", "/api/workspaces"), 507, "storage_full")
