"""Lists and records: pages, filters, order, odd names; one SELECT however long."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from unit.serving import make_template, make_workspace

from svc.db.connect import close_database, database, write
from svc.domain import operations


def names(listeners: Any, query: str = "", who: str = "ada") -> list[str]:
    response = listeners.ask(who, "GET", f"/api/workspaces{query}")
    assert response.status_code == 200, response.text
    return [item["name"] for item in response.get_json()["items"]]


def fill(people: Any, count: int) -> None:
    template = make_template(people["ada"].id)
    for number in range(count):
        at = f"2026-01-01T00:00:00.{number:03}Z"
        make_workspace(
            people["ada"].id, template, f"w-{number}", id=f"ws-{number:08}", created_at=at,
            status="running" if number % 2 else "stopped", display_name=f"Nr {number} 100% _x",
        )  # fmt: skip


def test_pages(listeners: Any, people: Any) -> None:
    fill(people, 7)
    page = listeners.ask("ada", "GET", "/api/workspaces?limit=3").get_json()
    assert (page["total"], page["limit"], page["offset"], page["next_offset"]) == (7, 3, 0, 3)
    page = listeners.ask("ada", "GET", "/api/workspaces?limit=3&offset=6").get_json()
    assert ([item["name"] for item in page["items"]], page["next_offset"]) == (["w-6"], None)
    assert names(listeners, "?offset=100") == []
    assert listeners.ask("ada", "GET", "/api/workspaces").get_json()["limit"] == 50
    assert names(listeners, who="bob") == []


def test_order_and_filters(listeners: Any, people: Any) -> None:
    fill(people, 4)
    assert names(listeners, "?sort=-created_at") == ["w-3", "w-2", "w-1", "w-0"]
    assert names(listeners, "?status=running") == ["w-1", "w-3"]
    assert names(listeners, "?status=running,stopped&sort=-name&limit=1") == ["w-3"]
    assert names(listeners, "?q=W-2") == ["w-2"]
    assert names(listeners, "?q=100%25") == names(listeners)
    assert names(listeners, "?q=0%25x") == []
    assert names(listeners, "?q=_x&status=running") == ["w-1", "w-3"]
    assert names(listeners, "?q='%20OR%201=1--") == []


def test_one_select_however_many(listeners: Any, people: Any) -> None:
    fill(people, 60)
    said: list[str] = []
    database.connection().set_trace_callback(said.append)
    assert len(names(listeners)) == 50
    created, kept = [sql for sql in said if "workspace" in sql], len(said)
    assert len([sql for sql in created if "json_object" in sql]) == 1
    assert len(created) == 2, created  # the page, and how many there are in all
    assert len(names(listeners)) == 50
    database.connection().set_trace_callback(None)
    assert len(said) - kept == 2  # who asks, and whether anything was written since


def test_the_total_is_right_whoever_wrote(listeners: Any, people: Any, settings: Any) -> None:
    fill(people, 3)

    def total(query: str = "") -> int:
        return int(listeners.ask("ada", "GET", f"/api/workspaces{query}").get_json()["total"])

    assert (total(), total("?status=running"), total()) == (3, 1, 3)
    database.execute_sql("DELETE FROM workspaces WHERE name = 'w-1'")  # this connection
    assert (total(), total("?status=running")) == (2, 0)
    with closing(sqlite3.connect(settings.db)) as other:
        other.execute("DELETE FROM workspaces WHERE name = 'w-2'")
        other.commit()
    assert total() == 1
    with write():
        database.execute_sql("UPDATE workspaces SET display_name = 'new'")
    assert listeners.ask("ada", "GET", "/api/workspaces").get_json()["items"][0]["display_name"] == "new"
    close_database()  # another connection of this thread, at the same counts
    assert total() == 1
    assert total("?q=nothing") == 0


def test_odd_text_round_trips(listeners: Any, people: Any) -> None:
    make_template(people["ada"].id)
    name = "\"<img onerror=x> 'ü' 日本 \\u202e"
    env = [{"name": "A", "value": 'line\nbreak "quoted" \\ \x1b ü💥'}]
    body = {"name": "lab", "template": "base", "display_name": name, "env": env}
    created = listeners.ask("ada", "POST", "/api/workspaces", json=body)
    assert created.status_code == 201
    record = listeners.ask("ada", "GET", "/api/workspaces").get_json()["items"][0]
    assert (record["display_name"], record["env"]) == (name, env)
    assert created.get_json() == record


def test_an_operation_shows_in_the_record(listeners: Any, people: Any, lab: str) -> None:
    with write():
        database.execute_sql(
            "INSERT INTO operations"
            " (id, owner_id, kind, subject_type, subject_id, status, created_at, updated_at)"
            " VALUES ('op-1', ?, 'setup', 'workspace', ?, 'running', '', '')",
            (people["ada"].id, lab),
        )
    record = listeners.ask("ada", "GET", "/api/workspaces/lab").get_json()
    progress = {"current": 5, "total": 10, "unit": "bytes", "rate": 2, "seconds_left": 3}
    operations.report("op-1", "pulling", progress)
    expected = {"id": "op-1", "kind": "setup", "status": "running", "phase": "pulling", "progress": progress}
    assert listeners.ask("ada", "GET", f"/api/workspaces/{lab}").get_json()["operation"] == expected
    record = listeners.ask("ada", "GET", "/api/workspaces").get_json()["items"][0]
    assert record["operation"] == expected


def test_a_port_has_its_addresses(listeners: Any, people: Any, lab: str) -> None:
    (listed,) = listeners.ask("ada", "GET", f"/api/workspaces/{lab}/ports").get_json()["items"]
    (port,) = listeners.ask("ada", "GET", "/api/workspaces").get_json()["items"][0]["ports"]
    at = port["host_port"]
    assert port["url"] == f"http://127.0.0.1:{at}"
    assert port["ssh"].startswith(f"ssh -N -L {at}:127.0.0.1:{at} ada@")
    assert {key: listed[key] for key in port} == port


def test_the_caller(listeners: Any) -> None:
    me = listeners.ask("boss", "GET", "/api/users/me").get_json()
    assert me == {
        "name": "boss", "uid": 2003, "display_name": "", "superuser": True,
        "linux_account": {"name": "boss", "uid": 2003, "home": "/home/boss"},
        "via": "socket", "roots": ["work"], "notices": [],
    }  # fmt: skip
    assert listeners.ask("root", "GET", "/api/users/me").get_json()["roots"] == []
    users = listeners.ask("root", "GET", "/api/users?sort=-name&q=b").get_json()
    assert [user["name"] for user in users["items"]] == ["boss", "bob"]
    assert "password_hash" not in users["items"][0]


def test_the_registry_policy(listeners: Any) -> None:
    entry = {"host": "registry.example", "path_prefix": "", "insecure": False}
    assert listeners.ask("ada", "GET", "/api/images/allowlist").get_json()["items"] == [entry]
    same = listeners.ask("root", "PUT", "/api/admin/registries", json={"registries": [entry]})
    assert same.get_json() == {"registries": [entry]}
    response = listeners.ask(
        "root", "PUT", "/api/admin/registries", json={"registries": [{"host": "r.example:5000"}]}
    )
    assert (response.status_code, response.get_json()["error"]["code"]) == (403, "admin_command_only")
    assert listeners.far.asked() == []
    for bad in ({"host": "R"}, {"host": "a/b"}, {"host": "a", "path_prefix": "../x"}, {"host": "a", "x": 1}):
        response = listeners.ask("root", "PUT", "/api/admin/registries", json={"registries": [bad]})
        assert response.status_code == 422
