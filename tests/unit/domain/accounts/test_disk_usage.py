"""Figures of disks: requested, kept, summed; an agent's nonsense is refused."""

from __future__ import annotations

from typing import Any

import pytest

from svc.db.connect import database, write
from svc.domain import operations
from svc.domain.accounts import disk_usage, removal
from svc.domain.accounts.disk_usage import AMOUNT_MAX, AMOUNTS
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.errors import EngineFailed, EngineTimeout, NotFound, ValidationFailed

REPLY: dict[str, Any] = {key: 2**number for number, key in enumerate(AMOUNTS)} | {
    "files": 9,
    "complete": True,
}
TOTAL = sum(REPLY[key] for key in AMOUNTS)


def of(name: str) -> dict[str, Any]:
    [record] = (item for item in disk_usage.page_of(Page())["items"] if item["name"] == name)
    return record


def test_nothing_is_known_before(ada: Caller) -> None:
    page = disk_usage.page_of(Page())
    assert of("ada") == dict.fromkeys((*AMOUNTS, "total_bytes", "files", "complete"), None) | {
        "name": "ada", "quota_image_bytes": None, "measured_at": None, "waiting": False, "error": None,
    }  # fmt: skip
    assert page["sums"] == dict.fromkeys((*AMOUNTS, "total_bytes"), 0)
    assert (page["waiting"], page["oldest_measured_at"]) == (0, None)


def test_asked_for_measured_and_summed(ada: Caller, bob: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    woken: list[int] = []
    monkeypatch.setattr(operations, "wake", lambda: woken.append(1))
    assert disk_usage.request(ada, []) == len(disk_usage.waiting()) >= 2
    assert woken == [1]
    for row in disk_usage.waiting():
        disk_usage.keep(row.user_id, REPLY)
    page = disk_usage.page_of(Page())
    assert page["sums"]["total_bytes"] == TOTAL * page["total"]
    assert (of("bob")["total_bytes"], of("bob")["waiting"], disk_usage.waiting()) == (TOTAL, False, [])
    assert page["oldest_measured_at"] <= of("bob")["measured_at"]
    disk_usage.request(ada, ["bob"])
    assert [row.name for row in disk_usage.waiting()] == ["bob"]
    disk_usage.fail(bob.user_id, EngineTimeout("the agent did not reply"))
    assert (of("bob")["error"], of("bob")["total_bytes"]) == ("the agent did not reply", TOTAL)
    disk_usage.keep(bob.user_id, REPLY | {"images_bytes": 0, "complete": False})
    assert (of("bob")["error"], of("bob")["complete"], of("bob")["total_bytes"]) == (None, False, TOTAL - 1)
    assert disk_usage.page_of(Page(sort="total_bytes"))["items"][0]["name"] == "bob"
    detail = database.execute_sql("SELECT target FROM audit WHERE action = 'disk.measure'").fetchall()
    assert detail == [("",), ("bob",)]


def test_only_active_accounts_have_an_agent(ada: Caller, bob: Caller) -> None:
    with write():
        database.execute_sql("UPDATE users SET disabled = 1 WHERE name = 'bob'")
    with pytest.raises(ValidationFailed, match="not active"):
        disk_usage.request(ada, ["bob"])
    with pytest.raises(NotFound):
        disk_usage.request(ada, ["nobody-here"])
    disk_usage.request(ada, [])
    assert "bob" not in [row.name for row in disk_usage.waiting()]


@pytest.mark.parametrize(
    "change",
    [
        {"images_bytes": -1}, {"images_bytes": "7"}, {"images_bytes": True}, {"images_bytes": 1.5},
        {"files": None}, {"complete": 1}, {"cache_bytes": 2**70},
    ],
)  # fmt: skip
def test_nonsense_of_an_agent_is_refused(ada: Caller, change: dict[str, Any]) -> None:
    disk_usage.request(ada, ["ada"])
    with pytest.raises(EngineFailed):
        disk_usage.keep(ada.user_id, REPLY | change)
    assert of("ada")["total_bytes"] is None


def test_a_boast_does_not_break_the_sums(ada: Caller, bob: Caller) -> None:
    disk_usage.request(ada, [])
    for row in disk_usage.waiting():
        disk_usage.keep(row.user_id, dict.fromkeys((*AMOUNTS, "files"), 2**62) | {"complete": True})
    assert of("ada")["images_bytes"] == AMOUNT_MAX
    assert disk_usage.page_of(Page())["sums"]["total_bytes"] > AMOUNT_MAX


def test_a_deleted_account_leaves_no_figures(ada: Caller) -> None:
    disk_usage.request(ada, ["ada"])
    assert any("disk_usage" in statement for statement in removal._OWNED)
