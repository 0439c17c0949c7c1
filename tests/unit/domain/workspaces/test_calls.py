"""exec: the owner's alone (HOSTILE rows 37 to 39)."""

from __future__ import annotations

from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc import errors
from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.workspaces import calls as workspace_calls
from svc.domain.workspaces import states, workspaces
from svc.host.ids import now
from svc_helper.wire.limits import EXEC_OUTPUT_MAX


@pytest.fixture
def running(ada: Caller, template: str) -> str:
    return make_workspace(ada.user_id, template, status="running")


def test_exec(ada: Caller, far: FarEnd, running: str) -> None:
    result = workspace_calls.run(ada, "lab", ["-it", "--user=root", "a b"], 5)
    assert result == {
        "exit_code": 0, "stdout": "aGkK", "stderr": "", "truncated": False, "timed_out": False,
        "duration_ms": 7,
    }  # fmt: skip
    call = far.calls[0]
    assert call.args == {"id": running, "command": ["-it", "--user=root", "a b"], "timeout_s": 5}
    rows = database.execute_sql(
        "SELECT action, target, outcome, detail_json FROM audit ORDER BY id"
    ).fetchall()
    assert [row[:3] for row in rows] == [
        ("workspace.exec", running, "begun"),
        ("workspace.exec", running, "ok"),
    ]
    assert "a b" not in rows[0][3] + rows[1][3]


def test_exec_is_owner_only_even_for_administrators(
    ada: Caller, bob: Caller, boss: Caller, far: FarEnd, running: str
) -> None:
    with pytest.raises(errors.OwnerOnly):
        workspace_calls.run(boss, running, ["id"])
    for caller, ref in ((bob, running), (bob, "lab"), (boss, "lab"), (boss, "ws-nobodys0")):
        with pytest.raises(errors.NotFound):
            workspace_calls.run(caller, ref, ["id"])
    assert far.verbs() == []
    rows = database.execute_sql("SELECT user_name, action, target, outcome FROM audit").fetchall()
    assert rows == [("boss", "workspace.exec", running, "owner_only")]


def test_exec_in_a_stopped_one(ada: Caller, far: FarEnd, template: str) -> None:
    make_workspace(ada.user_id, template)
    with pytest.raises(errors.WorkspaceNotRunning) as caught:
        workspace_calls.run(ada, "lab", ["id"])
    assert caught.value.hint == "svc ws start lab"
    assert far.verbs() == []


def test_exec_in_one_that_was_started_behind_our_back(ada: Caller, far: FarEnd, template: str) -> None:
    before = "2026-01-01T00:00:00.000Z"
    make_workspace(ada.user_id, template, container_id="c" * 64, started_at=before)
    assert workspace_calls.run(ada, "lab", ["id"])["exit_code"] == 0
    record = workspaces.get(ada, "lab")
    assert record["status"] == "running"
    assert record["started_at"] > before, "not when an earlier run did"


def test_exec_in_one_that_ended_unseen_notes_it(ada: Caller, far: FarEnd, running: str) -> None:
    far.answers |= {"ctr.exec": "not_running", "ctr.inspect": {"exists": True, "status": "stopped"}}
    with pytest.raises(errors.WorkspaceNotRunning):
        workspace_calls.run(ada, "lab", ["id"])
    record = workspaces.get(ada, "lab")
    assert (record["status"], record["status_reason"]) == ("stopped", "container_exited")


@pytest.mark.parametrize(
    ("started_at", "seen", "reason", "exit_code"),
    [
        ("2000-01-01T00:00:00.000Z", {"exists": True, "status": "stopped", "exit_code": 0}, "host_reboot", 0),
        ("2000-01-01T00:00:00.000Z", {"exists": False}, "host_reboot", None),
        (None, {"exists": True, "status": "stopped", "exit_code": 3}, "container_exited", 3),
        (None, {"exists": True, "status": "exited", "exit_code": 137, "oom_killed": True}, "oom_killed", 137),
    ],
)
def test_the_end_that_a_call_notes_has_the_reconcilers_reason(
    ada: Caller, far: FarEnd, running: str, started_at: str | None, seen: Any, reason: str, exit_code: Any
) -> None:
    """After a reboot the owner may call before the worker looks; the workspace is to be started again."""
    database.execute_sql("UPDATE workspaces SET started_at = ?", (started_at or now(),))
    far.answers |= {"ctr.exec": "not_running", "ctr.inspect": seen}
    with pytest.raises(errors.WorkspaceNotRunning):
        workspace_calls.run(ada, "lab", ["id"])
    record = workspaces.get(ada, "lab")
    assert (record["status_reason"], record["exit_code"]) == (reason, exit_code)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"exit_code": "0"},
        {"stdout": "!!!"},
        {"stdout": "A" * (EXEC_OUTPUT_MAX * 2)},
        {"stdout": 5},
        {"truncated": 1},
        {"duration_ms": 2**70},
        {"exit_code": True},
    ],
)
def test_a_hostile_agents_answer_is_refused(
    ada: Caller, far: FarEnd, running: str, answer: dict[str, Any]
) -> None:
    good = far.answers["ctr.exec"]
    far.answers["ctr.exec"] = good | answer if answer else {}
    with pytest.raises(errors.EngineFailed):
        workspace_calls.run(ada, "lab", ["id"])


def test_exec_is_no_idleness(ada: Caller, far: FarEnd, running: str) -> None:
    database.execute_sql("UPDATE workspaces SET idle_since = ?", (now(),))
    workspace_calls.run(ada, "lab", ["id"])
    assert database.execute_sql("SELECT idle_since FROM workspaces").fetchone() == (None,)


# --- what a call requires ----------------------------------------------------------------

STOPPED = {"exists": True, "status": "exited"}


def status(workspace_id: str) -> tuple[str, str | None]:
    workspace = states.of_id(workspace_id)
    assert workspace is not None
    return workspace.status, workspace.status_reason


@pytest.mark.parametrize(
    ("before", "container", "seen", "after"),
    [
        ("running", CONTAINER, STOPPED, "running"),  # the row is believed: the call itself finds out
        ("stopped", CONTAINER, {"exists": True, "status": "running"}, "running"),
        ("failed", CONTAINER, {"exists": True, "status": "running"}, "running"),
        ("stopped", CONTAINER, STOPPED, None),
        ("stopped", CONTAINER, "unavailable", None),
        ("stopped", None, None, None),
        ("starting", CONTAINER, {"exists": True, "status": "running"}, None),
    ],
)
def test_what_requires_a_running_workspace(
    ada: Caller, far: FarEnd, template: str, before: str, container: str | None, seen: Any, after: str | None
) -> None:
    far.answers["ctr.inspect"] = seen
    workspace_id = make_workspace(ada.user_id, template, status=before, container_id=container)
    workspace = states.find(ada, workspace_id)
    if after:
        workspace_calls.require_running(ada, workspace)
        assert status(workspace_id)[0] == after
        return
    with pytest.raises(errors.WorkspaceNotRunning) as caught:
        workspace_calls.require_running(ada, workspace)
    assert caught.value.hint == "svc ws start lab"
    assert status(workspace_id)[0] == before


def test_nobody_inspects_anothers(ada: Caller, boss: Caller, far: FarEnd, template: str) -> None:
    workspace_id = make_workspace(ada.user_id, template, container_id=CONTAINER)
    assert not workspace_calls.runs_unseen(boss, states.find(boss, workspace_id, "ada"))
    assert far.verbs() == []


@pytest.mark.parametrize("error", [errors.NotFound("gone"), errors.WorkspaceNotRunning("ended")])
def test_a_call_that_finds_the_end_corrects_the_row(
    ada: Caller, far: FarEnd, template: str, error: errors.SvcError
) -> None:
    far.answers["ctr.inspect"] = STOPPED
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    workspace = states.find(ada, workspace_id)
    with (
        pytest.raises(errors.WorkspaceNotRunning, match="lab is not running"),
        workspace_calls.expect_running(ada, workspace),
    ):
        raise error
    assert status(workspace_id) == ("stopped", "container_exited")


def test_what_cannot_be_inspected_is_left_to_the_reconciler(
    ada: Caller, far: FarEnd, template: str, wakes: list[int]
) -> None:
    far.answers["ctr.inspect"] = "unavailable"
    workspace_id = make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)
    workspace_calls.note_end(ada, states.find(ada, workspace_id))
    assert status(workspace_id) == ("running", None)
    assert wakes
