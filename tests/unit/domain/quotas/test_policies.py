"""The named policies: set, listed, given, removed; each change is on record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from svc.db.connect import database
from svc.domain.accounts import user_edits, users
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.domain.quotas import quotas
from svc.errors import AdminOnly, Conflict, NotFound, ValidationFailed

NOTHING = {
    "max_workspaces": None, "max_running": None, "max_gpus": None, "max_cpu": None, "max_memory_bytes": None,
    "max_image_bytes": None,
}  # fmt: skip


def audit_of(action: str) -> list[tuple[str, str, Any]]:
    rows = database.execute_sql(
        "SELECT target, outcome, detail_json FROM audit WHERE action = ? ORDER BY id", (action,)
    ).fetchall()
    return [(target, outcome, json.loads(detail)) for target, outcome, detail in rows]


def test_a_policy_is_made_and_replaced_as_a_whole(boss: Caller) -> None:
    created = quota_policies.put(boss, "small", {"max_running": 2, "max_cpu": 1.5})
    assert created == NOTHING | {"name": "small", "max_running": 2, "max_cpu": 1.5, "users": 0}
    replaced = quota_policies.put(boss, "small", {"max_memory_bytes": 2**30, "max_cpu": None})
    assert replaced == NOTHING | {"name": "small", "max_memory_bytes": 2**30, "users": 0}
    assert quota_policies.get("small") == replaced
    assert [(target, detail["max_running"]) for target, _, detail in audit_of("quota.set")] == [
        ("small", 2), ("small", None),
    ]  # fmt: skip


def test_the_list_says_for_how_many_each_holds(ada: Caller, bob: Caller, boss: Caller) -> None:
    quota_policies.put(boss, "small", {})
    user_edits.edit(boss, "ada", {"quota": "small"})
    page = quota_policies.page_of(Page())
    assert [(one["name"], one["users"]) for one in page["items"]] == [("default", 2), ("small", 1)]
    assert quota_policies.page_of(Page(q="sma"))["total"] == 1


def test_a_policy_is_given_and_taken_back(ada: Caller, boss: Caller) -> None:
    quota_policies.put(boss, "small", {"max_gpus": 1})
    assert user_edits.edit(boss, "ada", {"quota": "small"})["quota"] == "small"
    assert quotas.of(ada.user_id).max_gpus == 1
    quota_policies.put(boss, "small", {"max_gpus": 2})  # while somebody has it
    assert quotas.of(ada.user_id).max_gpus == 2
    with pytest.raises(Conflict) as caught:
        quota_policies.delete(boss, "small")
    assert caught.value.details == {"users": ["ada"]}
    assert caught.value.hint == "sudo svc admin edit-user ada --quota default"
    assert user_edits.edit(boss, "ada", {"quota": None})["quota"] is None
    quota_policies.delete(boss, "small")
    assert quotas.of(ada.user_id).name == "default"
    assert audit_of("quota.delete") == [("small", "ok", {})]
    assert [detail["quota"] for _, _, detail in audit_of("user.edit")] == ["small", None]


def test_what_is_refused(ada: Caller, boss: Caller) -> None:
    with pytest.raises(ValidationFailed) as caught:
        user_edits.edit(boss, "ada", {"quota": "absent", "display_name": "kept out"})
    assert caught.value.fields[0]["field"] == "quota"
    assert users.get("ada").display_name == ""
    with pytest.raises(Conflict, match="cannot be deleted"):
        quota_policies.delete(boss, "default")
    with pytest.raises(NotFound):
        quota_policies.delete(boss, "absent")
    with pytest.raises(NotFound):
        quota_policies.get("absent")
    for name in ("Big", "a b", "-a", "a" * 64, "a\n"):
        with pytest.raises(ValidationFailed):
            quota_policies.put(boss, name, {})


def test_administrators_only(ada: Caller) -> None:
    with pytest.raises(AdminOnly):
        quota_policies.put(ada, "small", {})
    with pytest.raises(AdminOnly):
        quota_policies.delete(ada, "small")
    with pytest.raises(AdminOnly):
        user_edits.edit(ada, "ada", {"quota": None})
