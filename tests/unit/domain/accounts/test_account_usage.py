"""Accounts with their usage: each count is of that account alone."""

from __future__ import annotations

from typing import Any

from unit.serving import make_template, make_workspace

from svc.db.connect import database
from svc.domain.accounts import account_usage, sessions, tokens
from svc.domain.audit import audit
from svc.domain.pages import Page
from svc.domain.principal import Caller


def of(name: str) -> dict[str, Any]:
    [record] = (item for item in account_usage.page_of(Page())["items"] if item["name"] == name)
    return {key: record[key] for key in account_usage.KEYS}


def test_nothing_is_used(ada: Caller) -> None:
    assert of("ada") == dict.fromkeys(account_usage.KEYS[:7], 0) | {
        "last_login_at": None, "last_action_at": None,
    }  # fmt: skip


def test_what_is_used(ada: Caller, bob: Caller) -> None:
    template = make_template(ada.user_id)
    running = make_workspace(ada.user_id, template, status="running")
    make_workspace(ada.user_id, template, name="other")
    make_template(None, "global")
    database.execute_sql("INSERT INTO gpu_leases VALUES ('GPU-1', ?, 'exclusive', '')", (running,))
    database.execute_sql(
        "INSERT INTO images (owner_id, image_ref, status, size_bytes, updated_at) VALUES"
        " (?1, 'a', 'ready', 7, ''), (?1, 'b', 'ready', 5, ''), (?1, 'c', 'failed', 100, '')",
        (ada.user_id,),
    )
    sessions.begin(ada.user_id, "192.0.2.1")
    tokens.revoke(ada, tokens.create(ada, "old")["id"])
    tokens.create(ada, "new")
    database.execute_sql("INSERT INTO login_places VALUES (?, '192.0.2.1', '2026-11-01', 0)", (ada.user_id,))
    audit.add(ada, "thing.do", "x", "ok")
    last = database.execute_sql("SELECT max(at) FROM audit").fetchone()[0]
    assert of("ada") == {
        "workspaces": 2, "running": 1, "gpus": 1, "image_bytes": 12, "templates": 1, "sessions": 1,
        "tokens": 1, "last_login_at": "2026-11-01", "last_action_at": last,
    }  # fmt: skip
    assert of("bob")["workspaces"] == 0


def test_each_count_follows_an_index(ada: Caller) -> None:
    plan = database.execute_sql(f"EXPLAIN QUERY PLAN {account_usage._USAGE}(?)", ("", "ada")).fetchall()
    assert not [line for *_, line in plan if line.startswith("SCAN") and "CONSTANT" not in line]
