"""Verdicts become rows by compare-and-set, each with its audit row."""

from __future__ import annotations

import pytest

from svc.db.connect import database
from svc.db.held import numbers
from svc.domain.principal import Caller
from svc.domain.workspaces import reconcile_rules, transitions
from svc.domain.workspaces.reconcile_rules import Verdict


@pytest.fixture
def caller(owner: int) -> Caller:
    return Caller("worker", owner, "ada", -1, False, "reconcile-1", "", helper=None)  # type: ignore[arg-type]


def one(workspace_id: str) -> tuple:
    return database.execute_sql(
        "SELECT status, status_reason, exit_code, stopped_at, started_at FROM workspaces WHERE id = ?",
        (workspace_id,),
    ).fetchone()


def test_a_verdict_is_written_with_its_reason_and_time(workspace, caller: Caller) -> None:
    workspace_id = workspace("running", started_at="2026-01-01T00:00:00.000Z")
    (row,) = reconcile_rules.rows()
    assert transitions.reconcile(caller, row, Verdict("stopped", "oom_killed", 137))
    status, reason, exit_code, stopped_at, started_at = one(workspace_id)
    assert (status, reason, exit_code, started_at) == (
        "stopped",
        "oom_killed",
        137,
        "2026-01-01T00:00:00.000Z",
    )
    assert stopped_at
    audit = database.execute_sql("SELECT action, target, outcome FROM audit").fetchall()
    assert audit == [("workspace.reconcile", workspace_id, "stopped")]


def test_a_row_that_moved_on_is_left_alone(workspace, caller: Caller) -> None:
    workspace_id = workspace("starting", since="2026-01-01T00:00:00.000Z")
    (row,) = reconcile_rules.rows()
    database.execute_sql(
        "UPDATE workspaces SET status = 'running', status_since = '2026-01-01T00:00:01.000Z'"
    )
    assert not transitions.reconcile(caller, row, Verdict("stopped", "engine_error"))
    assert one(workspace_id)[0] == "running"
    assert not database.execute_sql("SELECT 1 FROM audit").fetchall()


@pytest.mark.parametrize(
    ("status", "reason", "stopped_at", "is_new"),
    [
        ("starting", None, "2026-01-02T00:00:00.000Z", True),
        ("stopped", "user_requested", "2026-01-02T00:00:00.000Z", True),
        ("failed", "engine_error", "2026-01-02T00:00:00.000Z", True),
        ("failed", "engine_error", None, False),
        ("stopping", "user_requested", "2025-01-01T00:00:00.000Z", False),
        ("stopped", "restored", "2025-01-01T00:00:00.000Z", False),
        ("stopped", "restored", "2026-01-02T00:00:00.000Z", True),
    ],
)
def test_what_is_found_running_began_now_unless_it_goes_on(
    workspace, caller: Caller, status: str, reason: str | None, stopped_at: str | None, is_new: bool
) -> None:
    """By an earlier run's time its next end would be one by a reboot that came in between."""
    before = "2026-01-01T00:00:00.000Z"
    workspace_id = workspace(status, since="2026-01-03T00:00:00.000Z", started_at=before)
    database.execute_sql("UPDATE workspaces SET status_reason = ?, stopped_at = ?", (reason, stopped_at))
    (row,) = reconcile_rules.rows()
    assert transitions.reconcile(caller, row, Verdict("running", None))
    assert one(workspace_id)[0] == "running"
    assert (one(workspace_id)[4] > before) is is_new


def test_gone_removes_the_row(workspace, caller: Caller) -> None:
    workspace("deleting")
    (row,) = reconcile_rules.rows()
    assert transitions.reconcile(caller, row, Verdict("gone", None))
    assert reconcile_rules.rows() == []


def test_what_is_unresolved_and_what_runs(workspace) -> None:
    workspace("running", name="a")
    workspace("stopped", name="d")
    workspace("starting", name="e")
    with numbers.holding() as work:
        workspace("starting", name="b", since="2026-01-01T00:00:00.000Z", work=work)
        workspace("starting", name="c", work=work)
        assert [row.id for row in reconcile_rules.running()] == ["ws-0000000a"]
        assert {row.id: row.orphan for row in reconcile_rules.unresolved()} == {
            "ws-0000000b": False,
            "ws-0000000e": True,
        }
        assert len(reconcile_rules.unresolved(0)) == 3
    assert all(row.orphan for row in reconcile_rules.unresolved())
