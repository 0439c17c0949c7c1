"""What the worker asks in each round, and the first page of each list, walk through no table that grows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_template, make_workspace

from svc.db.connect import database, write
from svc.domain import events, operations
from svc.domain.audit import audit
from svc.domain.gpus import health
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.templates import history, templates
from svc.domain.workspaces import idle, launchers, reconcile_rules, workspaces
from svc.worker import boots, stopped

GROWING = ("audit", "events", "operations", "workspaces", "template_revisions", "templates", "images")
PARTIAL = (  # of few rows
    "workspaces_active", "workspaces_idle", "workspaces_health", "operations_open", "events_shared",
    "workspaces_rebooted",  # those that a reboot stopped and nobody has started since
)  # fmt: skip
CALLS = 200
USED = (  # KiB in pages: of all but events, and of events with their indices
    "SELECT total(d.pgsize * (s.tbl_name IS NOT 'events')) / 1024,"
    " total(d.pgsize * (s.tbl_name IS 'events')) / 1024"
    " FROM dbstat d LEFT JOIN sqlite_schema s ON s.name = d.name"
)
ALIAS = re.compile(r"\b(?:FROM|JOIN|UPDATE) (\w+) (\w)\b")
SCAN = re.compile(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?")
ROUND: dict[str, Callable[[], object]] = {
    "queued operations": lambda: operations.claim({}, 2),
    "operations to go on with": operations.recover,
    "audit rows without an outcome": audit.end_interrupted,
    "rows in a transition": reconcile_rules.unresolved,
    "running workspaces": reconcile_rules.running,
    "one owner's rows": lambda: reconcile_rules.rows(1),
    "starts after a reboot": boots.due,
    "stopped ones to delete": lambda: stopped.due("2026-01-01T00:00:00.000Z"),
    "running launchers": launchers.started_runs,
    "idle policies": idle.watched,
    "who has become active": idle.forget_ended,
    "GPUs to look after": health.due,
}


@pytest.fixture
def lists(ada: Caller) -> dict[str, Callable[[], object]]:
    make_workspace(ada.user_id, make_template(ada.user_id, "base"))
    own = events.view_of(ada)
    filters: dict[str, dict[str, Any]] = {
        "of a user": {"user": "ada"}, "of an action": {"action": "auth.login"},
        "of a noun": {"action": "auth"}, "of an outcome": {"outcome": "name_taken"},
        "of a request": {"request_id": "req-0123456789abcdef"}, "since a time": {"since": "2026-01-01"},
        "to a time": {"until": "2026-01-01"}, "of one's own": {"owner_id": ada.user_id}, "of all": {},
    }  # fmt: skip
    found: dict[str, Callable[[], object]] = {
        f"audit {name}": (lambda chosen=chosen: audit.page_of(Page(), **chosen))  # type: ignore[misc]
        for name, chosen in filters.items()
    }
    return found | {
        "workspaces": lambda: workspaces.page_of(ada, Page()),
        "templates": lambda: templates.page_of(ada, Page()),
        "a template's revisions": lambda: history.page_of(ada, "base", Page()),
        "operations": lambda: operations.page_of(ada, Page()),
        "own events": lambda: events.page_of(own, Page()),
        "own events from a place": lambda: events.following_in(own, 5, 100),
    }


def test_the_workers_rounds(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    make_workspace(ada.user_id, make_template(ada.user_id, "base"))
    for name, call in ROUND.items():
        assert scans(call, monkeypatch) == [], name


def test_first_pages(lists: dict[str, Callable[[], object]], monkeypatch: pytest.MonkeyPatch) -> None:
    for name, call in lists.items():
        assert scans(call, monkeypatch) == [], name


def test_a_rare_action_is_not_sorted(ada: Caller) -> None:
    statements: list[str] = []
    database.connection().set_trace_callback(statements.append)
    try:
        audit.page_of(Page(), action="admin.quota")
    finally:
        database.connection().set_trace_callback(None)
    for statement in statements:
        plan = database.execute_sql(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert not any("TEMP B-TREE" in line for *_, line in plan), plan
    assert len(statements) == 2


def test_totals_that_are_kept_and_not_counted(ada: Caller, lists: dict[str, Callable[[], Any]]) -> None:
    for number in range(3):
        make_workspace(ada.user_id, make_template(ada.user_id, f"t{number}"), name=f"lab-{number}")
        with write():
            audit.add(ada, "auth.login", "ada", "ok")
    statements: list[str] = []
    database.connection().set_trace_callback(statements.append)
    try:
        of_user, own = lists["audit of a user"](), json.loads(lists["workspaces"]())
    finally:
        database.connection().set_trace_callback(None)
    assert not [statement for statement in statements if "count(*)" in statement]
    assert len(of_user["items"]) == of_user["total"] >= 3
    assert len(own["items"]) == own["total"] == 4
    assert json.loads(workspaces.page_of(ada, Page(q="lab-")))["total"] == 3
    assert json.loads(workspaces.page_of(ada, Page(status=("running",))))["total"] == 0
    assert audit.page_of(Page(), user="nobody")["total"] == 0
    assert audit.page_of(Page(), user="ada", outcome="name_taken")["total"] == 0


def test_a_round_without_work_does_not_lock(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("locked")

    monkeypatch.setattr(database, "begin", refused)
    for name in ("queued operations", "who has become active", "GPUs to look after"):
        ROUND[name]()
    assert operations.claim({}, 2) is None


def test_a_look_by_subject_has_an_index(ada: Caller) -> None:
    """The index of subjects has a few types only: a condition that needs it names its type."""
    triggers = database.execute_sql(
        "SELECT sql FROM sqlite_schema WHERE name LIKE 'events_supersede_%'"
    ).fetchall()
    statements = [
        sql.partition(" BEGIN")[2].rpartition(";")[0].replace("NEW.subject_id", "''").replace("NEW.id", "9")
        for (sql,) in triggers
    ]
    assert len(statements) == 3
    of_one = "SELECT 1 FROM events e WHERE e.subject_id = '' AND e.type"
    statements += [
        f"{of_one} = 'operation.progress' AND e.at BETWEEN '1' AND '2'",
        f"{of_one} = 'launcher.status_changed' ORDER BY at DESC, id DESC LIMIT 1",
        f"{of_one} = 'token.expiring'",
    ]
    for statement in statements:
        plan = database.execute_sql(f"EXPLAIN QUERY PLAN {statement}").fetchall()
        assert any("events_subject (subject_id=? AND type=?" in line for *_, line in plan), (statement, plan)


def test_what_starts_and_stops_leave(ada: Caller, far: FarEnd, template: str) -> None:
    """A start with its stop leaves a kilobyte for good at most, and one more for EVENT_DAYS_KEPT."""
    far.answers["ctr.start"] = {
        "container_id": CONTAINER,
        "pid": 5,
        "started_at": None,
        "devices_missing": [],
    }
    make_workspace(ada.user_id, template, container_id=CONTAINER)
    before = database.execute_sql(USED).fetchone()
    for _ in range(CALLS):
        workspaces.start(ada, "lab")
        workspaces.stop(ada, "lab")
    after = database.execute_sql(USED).fetchone()
    for end, start in zip(after, before, strict=True):
        assert 0.1 < (end - start) / CALLS <= 1.0


def test_a_day_by_a_clock_that_was_set_back(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row of a span is found, wherever its day's rows are; no other is."""
    for day in (1, 2, 1, 3, 2, 4):
        monkeypatch.setattr(audit, "now", lambda day=day: f"2026-03-0{day}T12:00:00.000Z")
        with write():
            audit.add(ada, "auth.login", "ada", "ok")

    def ids(**span: str) -> list[int]:
        page = audit.page_of(Page(), **span)
        assert page["total"] == len(page["items"])
        return [row["id"] for row in page["items"]]

    assert ids(since="2026-03-02") == [6, 5, 4, 2]
    assert ids(until="2026-03-02") == [3, 1]
    assert ids(since="2026-03-01T12:00:00.001Z", until="2026-03-03T12:00:00.000Z") == [5, 2]
    assert ids(since="2026-03-05") == ids(until="2026-03-01") == []


def scans(call: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The lines of the plans of a call's statements that read a growing table from end to end."""
    statements: list[tuple[str, Any]] = []
    execute = database.execute_sql

    def kept(sql: str, params: Any = None) -> Any:
        statements.append((sql, params))
        return execute(sql, params)

    with monkeypatch.context() as patch:
        patch.setattr(database, "execute_sql", kept)
        call()
    found = []
    for sql, params in statements:
        if sql.endswith("ORDER BY id DESC LIMIT 1"):
            continue  # the newest row alone
        names = {alias for table, alias in ALIAS.findall(sql) if table in GROWING}
        for *_, line in execute(f"EXPLAIN QUERY PLAN {sql}", params).fetchall():
            scan = SCAN.fullmatch(line)
            if scan and scan[1] in {*names, *GROWING} and scan[2] not in PARTIAL:
                found.append(line)
    return found
