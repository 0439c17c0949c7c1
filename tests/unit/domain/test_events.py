"""Events: what triggers write, who reads what, and what is forgotten."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import closing, suppress
from typing import Any

import pytest
from unit.serving import FarEnd, caller_of, make_template, make_user, make_workspace

from svc.db import acting, facts
from svc.db.connect import RETRY_S, database, write
from svc.domain import events, retention
from svc.domain.accounts import removal, tokens
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.errors import AdminOnly, ValidationFailed
from svc.host.ids import after, now


@pytest.fixture
def ada(db: str) -> Any:
    return make_user("ada", 2001)


@pytest.fixture
def bob(db: str) -> Any:
    return make_user("bob", 2002)


@pytest.fixture
def boss(db: str) -> Any:
    return make_user("boss", 2003, superuser=True)


def run(sql: str, *values: Any) -> None:
    with write():
        database.execute_sql(sql, values)


def newly(place: int) -> list[tuple[str, str, dict[str, Any]]]:
    """Type, subject and data of the events after this place."""
    rows = events.following(place, 100)
    return [(row.type, row.subject_name, json.loads(row.data_json)) for row in rows]


def view(user: Any, *, administers: bool = False, everything: bool = False) -> events.View:
    return events.View(user.id, administers, everything, frozenset())


def test_a_workspaces_life(ada: Any) -> None:
    template = make_template(ada.id)
    place = events.newest()
    ws = make_workspace(ada.id, template, "lab", status="creating")
    run("UPDATE workspaces SET status = 'stopped', status_reason = 'user_requested' WHERE id = ?", ws)
    run("UPDATE workspaces SET status = 'stopped', container_id = 'c', idle_since = 'x' WHERE id = ?", ws)
    run("UPDATE workspaces SET name = 'den', cpu_limit = 1, env_json = '{\"A\": 1}' WHERE id = ?", ws)
    run(
        "INSERT INTO ports (workspace_id, name, container_port, host_port, created_at)"
        " VALUES (?, 'web', 80, 9, '')",
        ws,
    )
    run("UPDATE workspaces SET status = 'running' WHERE id = ?", ws)
    run("UPDATE workspaces SET health = 'gpu_lost' WHERE id = ?", ws)
    run("UPDATE workspaces SET health = 'ok' WHERE id = ?", ws)
    run("DELETE FROM workspaces WHERE id = ?", ws)
    found = [row for row in newly(place) if row[0] != "capacity.changed"]
    assert found == [
        ("workspace.created", "lab", {"status": "creating", "template_id": template}),
        ("workspace.status_changed", "lab", {"from": "creating", "to": "stopped", "exit_code": None}),
        ("workspace.updated", "den", {"changed": ["name", "resources", "env"]}),
        ("workspace.updated", "den", {"changed": ["ports"], "port": "web"}),
        ("workspace.status_changed", "den", {"from": "stopped", "to": "running", "exit_code": None}),
        ("gpu.lost", "den", {"gpus": []}),
        ("gpu.restored", "den", {"gpus": []}),
        ("workspace.deleted", "den", {}),
    ]
    assert [row[0] for row in newly(place)].count("capacity.changed") == 1  # the newest stands for all


@pytest.mark.parametrize(
    ("column", "value", "changed"), [("command_json", '["train"]', "command"), ("network", "lab", "network")]
)
def test_an_edit_of_what_the_container_is_made_with(ada: Any, column: str, value: str, changed: str) -> None:
    ws = make_workspace(ada.id, make_template(ada.id), "lab")
    place = events.newest()
    for _ in range(2):
        run(f"UPDATE workspaces SET {column} = ? WHERE id = ?", value, ws)
    assert newly(place) == [("workspace.updated", "lab", {"changed": [changed]})]


def test_operations_report_once_a_second(ada: Any) -> None:
    run(
        "INSERT INTO operations (id, owner_id, kind, subject_type, subject_id, status, created_at,"
        " updated_at) VALUES ('op-1', ?, 'pull', 'template', 'tpl-1', 'queued', ?, ?)", ada.id, now(), now(),
    )  # fmt: skip
    run("UPDATE operations SET status = 'running' WHERE id = 'op-1'")
    began = events.newest()
    for current in range(50):
        run("UPDATE operations SET progress_json = ? WHERE id = 'op-1'", json.dumps({"current": current}))
    assert events.newest() - began < 50
    [(kind, _, data)] = newly(0)
    assert (kind, data["status"], data["subject"]) == (
        "operation.progress", "running", {"type": "template", "id": "tpl-1"},
    )  # fmt: skip
    run("UPDATE events SET at = ?", after(now(), -5))
    run("UPDATE operations SET progress_json = ? WHERE id = 'op-1'", json.dumps({"current": 7, "rate": 2.5}))
    [(_, _, data)] = newly(0)
    assert data["progress"] == {"current": 7, "rate": 2.5}
    run(
        "UPDATE operations SET status = 'failed', error_json = ? WHERE id = 'op-1'",
        json.dumps({"code": "engine_failed", "message": 'it said "no"'}),
    )
    [(kind, _, data)] = newly(0)
    assert (kind, data["status"], data["error"]["message"]) == (
        "operation.finished",
        "failed",
        'it said "no"',
    )


def test_templates_images_tokens_and_policies(ada: Any) -> None:
    template = make_template(ada.id, status="disabled")
    run("UPDATE templates SET status = 'enabled' WHERE id = ?", template)
    run("UPDATE templates SET name = 'other' WHERE id = ?", template)
    for status in ("pulling", "ready", "ready"):
        run(
            "INSERT INTO images (owner_id, image_ref, status, updated_at) VALUES (?1, 'r/i:1', ?2, '')"
            " ON CONFLICT DO UPDATE SET status = ?2", ada.id, status,
        )  # fmt: skip
    run("DELETE FROM images")
    run("DELETE FROM templates WHERE id = ?", template)
    far = FarEnd("unix")
    caller = caller_of(ada, far)
    token = tokens.create(caller, "ci")
    run("UPDATE tokens SET expires_at = ? WHERE id = ?", after(now(), 3600), token["id"])
    assert (events.note_expiring(), events.note_expiring()) == (1, 0)
    tokens.revoke(caller, "ci")
    far.close()
    actor = audit.Actor(None, "root", "admin")
    for outcome in ("begun", "ok"):
        audit.append(actor, "admin.registries", "registries", outcome, "req-1", {})
    assert [(kind, name) for kind, name, _ in newly(0)] == [
        ("template.created", "base"), ("template.enabled", "base"), ("template.updated", "other"),
        ("image.status_changed", "r/i:1"), ("image.status_changed", "r/i:1"),
        ("image.status_changed", "r/i:1"), ("template.deleted", "other"), ("token.created", "ci"),
        ("token.expiring", "ci"), ("token.revoked", "ci"), ("registries.changed", ""),
    ]  # fmt: skip
    assert {kind for kind, *_ in newly(0)} <= set(events.TYPES)


def test_everyone_has_their_own_and_what_concerns_all(ada: Any, bob: Any, boss: Any) -> None:
    make_template(ada.id)
    shared = make_template(None, "global", status="disabled")
    run("INSERT INTO quotas (name) VALUES ('small')")
    run(
        "INSERT INTO tokens (id, user_id, name, prefix, secret_hash, created_at, expires_at)"
        " VALUES ('tok-1', ?, 'secret plan', 'p', 'h', '', '')",
        bob.id,
    )
    mine = [row.type for row in events.following_in(view(ada), 0, 100)]
    assert mine == ["template.created", "capacity.changed"]
    theirs = [row.type for row in events.following_in(view(bob), 0, 100)]
    assert theirs == ["capacity.changed", "token.created"]
    bosses = events.following_in(view(boss, administers=True), 0, 100)
    assert [row.subject_id for row in bosses] == [shared, ""]
    everything = events.following_in(view(boss, administers=True, everything=True), 0, 100)
    assert len(everything) == 4
    run("UPDATE templates SET status = 'enabled' WHERE id = ?", shared)
    assert events.following_in(view(ada), 0, 100)[-1].type == "template.enabled"
    whole = view(boss, administers=True, everything=True)
    for row in events.following(0, 100):
        for reader in (view(ada), view(bob), view(boss, administers=True), whole):
            found = events.following_in(reader, row.id - 1, 1)
            assert reader.includes(row) == (found[:1] == [row])
    token = everything[-1].record(whole=whole.is_own(everything[-1]))
    assert (token["data"], token["subject"]["name"], token["owner"]) == (None, "", "bob")
    own = everything[-1].record(whole=view(bob).is_own(everything[-1]))
    assert (own["data"], own["subject"]["name"]) == ({"expires_at": ""}, "secret plan")


def test_views_are_checked(ada: Any, boss: Any) -> None:
    far = FarEnd("unix")
    with pytest.raises(AdminOnly):
        events.view_of(caller_of(ada, far), everything=True)
    assert events.view_of(caller_of(boss, far), everything=True).everything
    assert events.view_of(caller_of(ada, far), types="gpu.lost,gpu.restored").types
    with pytest.raises(ValidationFailed):
        events.view_of(caller_of(ada, far), types="gpu.lost,gpu.gone")
    far.close()


def test_pages(ada: Any) -> None:
    acting.begin("ada", "session")
    first, second = make_template(ada.id, "one"), make_template(ada.id, "two")
    acting.end()
    page = events.page_of(view(ada), Page())
    assert [item["subject"]["id"] for item in page["items"]] == [second, first]
    assert page["items"][0]["actor"] == {"user": "ada", "via": "session"}
    only = events.page_of(view(ada), Page(), subject="one")
    assert [item["subject"]["id"] for item in only["items"]] == [first]
    assert events.page_of(view(ada), Page(), event_id=page["items"][0]["id"])["total"] == 0
    run("UPDATE events SET data_json = 'rubbish'")
    assert events.page_of(view(ada), Page())["items"][0]["data"] == {}


def test_old_ones_are_forgotten(ada: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "STEP", 2)
    for name in ("one", "two", "three", "four", "five"):
        make_template(ada.id, name)
    run("UPDATE events SET at = ? WHERE id <= 3", after(now(), -31 * 24 * 3600))
    assert events.forgotten() == 0
    assert retention.forget_ended() == {"events": 3}
    assert (events.forgotten(), [row.id for row in events.following(0, 10)]) == (3, [4, 5])
    assert retention.forget_ended() == {}
    run("UPDATE events SET at = ?", after(now(), -31 * 24 * 3600))
    assert retention.forget_ended() == {"events": 2}
    make_template(ada.id, "six")
    assert events.newest() == 6  # no id is used again


def test_where_a_reader_of_lists_begins(ada: Any) -> None:
    """After what is a few seconds old: what came since may be in one answer and not in another."""
    assert events.newest_before() == 0
    for name in ("one", "two", "three"):
        make_template(ada.id, name)
    assert events.newest_before() == 0
    run("UPDATE events SET at = ? WHERE id <= 2", after(now(), -events.READ_S))
    assert events.newest_before() == 2
    run("DELETE FROM events")
    facts.put({events.FORGOTTEN: "3"})
    assert events.newest_before() == 3  # not before what is forgotten, which would be a gap


def test_others_write_while_old_ones_are_forgotten(
    ada: Any, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They ask for the lock again and again; a removal that took it at once again would keep them waiting."""
    monkeypatch.setattr(events, "STEP", 5)
    for _ in range(1000):
        events.add("workspace.updated", ada.id, ("workspace", "ws-1", "lab"), {})
    run("UPDATE events SET at = '2020-01-01T00:00:00.000Z'")
    left: list[int] = []

    def other() -> None:
        count = "SELECT count(*) FROM events"
        with closing(sqlite3.connect(db, isolation_level=None, timeout=0)) as connection:
            while connection.execute(count).fetchone()[0] == 1000:
                time.sleep(RETRY_S)
            while not left:
                with suppress(sqlite3.OperationalError):
                    connection.execute("BEGIN IMMEDIATE")
                    left.append(connection.execute(count).fetchone()[0])
                    connection.execute("ROLLBACK")
                time.sleep(RETRY_S)

    thread = threading.Thread(target=other)
    thread.start()
    assert events.forget_old() == 1000
    thread.join(30)
    assert left[0] > 0


def test_they_go_with_their_owner(ada: Any) -> None:
    make_template(ada.id)
    removal.finish(ada)
    assert events.following(0, 10) == []
