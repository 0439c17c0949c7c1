"""Looks at containers by a helper that answers from a table: GPUs are given up only behind a stop.

The rules themselves are in tests/unit/domain/workspaces/test_reconcile_rules.py.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_template

from svc.db import connect
from svc.db.connect import close_database, database, write
from svc.db.held import numbers
from svc.domain.accounts import users
from svc.domain.workspaces import leases, reconcile_rules, workspaces
from svc.errors import SvcError
from svc.host.ids import after, now
from svc.worker.reconciler import Reconciler

LONG_AGO = "2026-01-01T00:00:00.000Z"


@pytest.fixture
def far(db: str) -> Iterator[FarEnd]:
    end = FarEnd("worker")
    end.answers["ctr.list"] = {"containers": []}
    yield end
    end.close()


@pytest.fixture
def reconciler(far: FarEnd) -> Reconciler:
    return Reconciler(far.helper)


@pytest.fixture
def leased(workspace: Any) -> Any:
    """leased(status) -> the id of a workspace that has been so for long, with a GPU."""

    def make(status: str) -> str:
        workspace_id = str(workspace(status, since=LONG_AGO))
        with write():
            database.execute_sql(
                "INSERT INTO gpu_leases VALUES ('GPU-0', ?, 'exclusive', ?)", (workspace_id, LONG_AGO)
            )
        return workspace_id

    return make


def status(workspace_id: str) -> tuple[str, str | None]:
    row = database.execute_sql(
        "SELECT status, status_reason FROM workspaces WHERE id = ?", (workspace_id,)
    ).fetchone()
    return row[0], row[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [("starting", "stopped"), ("stopping", "stopped"), ("failed", "failed")],
)
def test_gpus_are_given_up_behind_a_stop(
    before: str, after: str, reconciler: Reconciler, far: FarEnd, leased: Any
) -> None:
    workspace_id = leased(before)
    reconciler.inspect_all()
    assert far.verbs() == ["ctr.list", "ctr.stop"]
    assert far.calls[-1].args == {"id": workspace_id, "grace_s": 0}
    assert status(workspace_id)[0] == after
    assert leases.of(workspace_id) == []


@pytest.mark.parametrize("before", ["starting", "stopping", "failed"])
def test_a_stop_that_fails_keeps_them_until_the_next_look(
    before: str, reconciler: Reconciler, far: FarEnd, leased: Any
) -> None:
    workspace_id = leased(before)
    far.answers["ctr.stop"] = "unavailable"
    reconciler.inspect_all()
    assert status(workspace_id)[0] == "failed"
    assert leases.of(workspace_id) == ["GPU-0"]
    with write():
        database.execute_sql("UPDATE workspaces SET status_since = ?", (LONG_AGO,))
    far.answers["ctr.stop"] = "not_found"
    reconciler.inspect_all()
    assert leases.of(workspace_id) == []


def test_what_runs_keeps_them(reconciler: Reconciler, far: FarEnd, leased: Any) -> None:
    workspace_id = leased("failed")
    far.answers["ctr.list"] = {"containers": [{"id": workspace_id, "status": "running", "exit_code": 0}]}
    reconciler.inspect_all()
    assert far.verbs() == ["ctr.list"]
    assert status(workspace_id) == ("running", None)
    assert leases.of(workspace_id) == ["GPU-0"]


@pytest.mark.parametrize("label", [None, 7, "x" * 100])
def test_a_container_that_the_user_labelled_hides_no_other(
    reconciler: Reconciler, far: FarEnd, leased: Any, label: Any
) -> None:
    workspace_id = leased("failed")
    own = {"id": label, "status": "running", "exit_code": 0}
    far.answers["ctr.list"] = {"containers": [own, own | {"id": workspace_id}]}
    reconciler.inspect_all()
    assert status(workspace_id) == ("running", None)


def test_a_running_one_that_is_seen_stopped_loses_them(
    reconciler: Reconciler, far: FarEnd, leased: Any
) -> None:
    workspace_id = leased("running")
    reconciler.inspect_all()
    assert far.verbs() == ["ctr.list"]
    assert status(workspace_id)[0] == "stopped"
    assert leases.of(workspace_id) == []


def test_after_a_restore(reconciler: Reconciler, far: FarEnd, workspace: Any) -> None:
    """What has no container is given a new one by its next start."""
    workspace_id = workspace("stopped", since=LONG_AGO)
    with write():
        database.execute_sql("UPDATE workspaces SET status_reason = 'restored', container_id = 'gone'")
    reconciler.inspect_all()
    assert far.verbs() == ["ctr.list"]
    assert status(workspace_id) == ("stopped", "container_missing")
    assert database.execute_sql("SELECT container_id FROM workspaces").fetchall() == [(None,)]


def test_after_a_restore_gpus_stay_with_what_runs(reconciler: Reconciler, far: FarEnd, leased: Any) -> None:
    """Nobody else gets them before it is known; what does not run gives them up behind a confirmed stop."""
    workspace_id = leased("failed")
    with write():
        database.execute_sql("UPDATE workspaces SET status_reason = 'restored'")
    far.answers["ctr.list"] = {"containers": [{"id": workspace_id, "status": "running", "exit_code": 0}]}
    reconciler.inspect_all()
    assert (status(workspace_id), leases.of(workspace_id)) == (("running", None), ["GPU-0"])
    with write():
        database.execute_sql("UPDATE workspaces SET status = 'failed', status_reason = 'restored'")
    far.answers["ctr.list"] = {"containers": []}
    reconciler.inspect_all()
    assert (status(workspace_id), leases.of(workspace_id)) == (("stopped", "container_missing"), [])
    assert far.verbs()[-1] == "ctr.stop"


def test_after_a_restore_what_runs_is_running(reconciler: Reconciler, far: FarEnd, workspace: Any) -> None:
    """Though its container is the one that the row names, so that nothing had to be put in its place."""
    workspace_id = workspace("stopped", since=LONG_AGO)
    with write():
        database.execute_sql(
            "UPDATE workspaces SET status_reason = 'restored', container_id = ?", ("c" * 64,)
        )
    far.answers["ctr.replace"] = {"replaced": True}
    far.answers["ctr.list"] = {"containers": [{"id": workspace_id, "status": "running", "exit_code": 0}]}
    reconciler.inspect_all()
    assert status(workspace_id) == ("running", None)
    assert "ctr.replace" not in far.verbs()


def test_without_gpus_nothing_is_stopped(reconciler: Reconciler, far: FarEnd, workspace: Any) -> None:
    with numbers.holding() as work:
        workspace_id = workspace("starting", since=LONG_AGO, work=work)
        reconciler.inspect_all()
    assert far.verbs() == ["ctr.list"]
    assert status(workspace_id) == ("stopped", "start_timeout")


def test_a_start_that_ends_during_a_look_is_no_end(reconciler: Reconciler, far: FarEnd, leased: Any) -> None:
    """Podman was asked before it ran, the row was written after: it runs, and its GPUs are its own."""
    workspace_id = leased("starting")
    with write():
        database.execute_sql("UPDATE workspaces SET status_since = ?", (now(),))

    def listed(_call: Any) -> dict[str, Any]:
        with write():
            database.execute_sql("UPDATE workspaces SET status = 'running', status_since = ?", (now(),))
        close_database()
        return {"containers": [{"id": workspace_id, "status": "created", "exit_code": 0}]}

    far.answers["ctr.list"] = listed
    reconciler.inspect_all()
    assert status(workspace_id) == ("running", None)
    assert leases.of(workspace_id) == ["GPU-0"]


@pytest.mark.parametrize("before", ["starting", "stopping", "failed"])
def test_a_clock_that_was_set_back_leaves_nothing_behind(
    before: str, reconciler: Reconciler, leased: Any
) -> None:
    """What its dead listener began "in the future" ends all the same, and so does its lease."""
    workspace_id = leased(before)
    with write():
        database.execute_sql("UPDATE workspaces SET status_since = ?", (after(now(), 400 * 86400),))
    assert [row.id for row in reconcile_rules.unresolved()] == [workspace_id]
    reconciler.inspect_all()
    assert status(workspace_id)[0] in ("stopped", "failed")
    assert leases.of(workspace_id) == []


def test_a_start_belongs_to_whoever_holds_its_number(
    reconciler: Reconciler, far: FarEnd, workspace: Any
) -> None:
    """It is the listener's own business while that works on it; then nothing waits for a deadline."""
    with numbers.holding() as work:
        workspace_id = workspace("starting", work=work)
        reconciler.inspect_all()
        assert status(workspace_id)[0] == "starting"
    reconciler.inspect_all()
    assert status(workspace_id) == ("stopped", "engine_error")
    assert far.verbs() == ["ctr.list", "ctr.list", "ctr.stop"]


def test_what_ends_during_a_look_is_no_orphan(reconciler: Reconciler, far: FarEnd, workspace: Any) -> None:
    """A call that began before Podman was asked and ended after it: what was seen is too old for its row."""
    with ExitStack() as ending:
        workspace_id = workspace("starting", work=ending.enter_context(numbers.holding()))

        def listed(_call: Any) -> dict[str, Any]:
            ending.close()
            return {"containers": []}

        far.answers["ctr.list"] = listed
        reconciler.inspect_all()
        assert status(workspace_id)[0] == "starting"


def test_what_failed_without_gpus_is_looked_at_for_a_while(workspace: Any) -> None:
    """Its agent could not be asked whether it runs; if it does, its owner's quota counts it."""
    workspace_id = workspace("failed", since=after(now(), -10))
    assert [row.id for row in reconcile_rules.unresolved()] == [workspace_id]
    with write():
        database.execute_sql("UPDATE workspaces SET status_since = ?", (LONG_AGO,))
    assert reconcile_rules.unresolved() == []


def test_an_agent_that_does_not_answer_keeps_no_other_from_being_looked_at(
    reconciler: Reconciler, far: FarEnd, workspace: Any
) -> None:
    """What a reboot has stopped is known for one owner after the other, and started so."""
    bob = users.create("bob", uid=2002, provisioning=users.READY).id
    his = workspace("running", name="his", since=LONG_AGO)
    with write():
        database.execute_sql("UPDATE workspaces SET owner_id = ?", (bob,))
    silent = workspace("running", since=LONG_AGO)

    def listed(call: Any) -> dict[str, Any]:
        if call.user == "ada":
            far.hold()
        return {"containers": []}

    far.answers["ctr.list"] = listed
    looking = threading.Thread(target=reconciler.inspect_all)
    looking.start()
    until = time.monotonic() + 20
    while status(his)[0] == "running" and time.monotonic() < until:
        time.sleep(0.01)
    assert (status(his)[0], status(silent)[0]) == ("stopped", "running")
    far.let_go()
    looking.join()
    assert status(silent)[0] == "stopped"


@pytest.mark.parametrize("made", [True, False])
def test_a_create_whose_row_could_not_be_completed_is_finished(
    reconciler: Reconciler, far: FarEnd, owner: int, made: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its listener lives on, but nobody works on the row: whatever Podman has is what the row gets."""
    template_id = make_template(owner)
    caller = users.acting_for(owner, far.helper, "req-1")
    monkeypatch.setattr(connect, "WRITE_WAIT_S", 0.05)
    other = sqlite3.connect(database.database, uri=True, isolation_level=None, check_same_thread=False)

    def create(_call: Any) -> Any:
        other.execute("BEGIN IMMEDIATE")
        return {"container_id": CONTAINER, "image_id": "i" * 64} if made else "failed"

    far.answers["ctr.create"] = create
    with pytest.raises(SvcError):
        workspaces.create(caller, {"name": "lab", "template": template_id})
    other.execute("ROLLBACK")
    other.close()
    ((workspace_id, before),) = database.execute_sql("SELECT id, status FROM workspaces").fetchall()
    assert before == "creating"
    if made:
        far.answers["ctr.list"] = {"containers": [{"id": workspace_id, "status": "created"}]}
    reconciler.inspect_all()
    assert status(workspace_id) == ("stopped", None if made else "engine_error")


@pytest.mark.parametrize(
    ("before", "verb", "after"),
    [
        ("stopping", "ctr.stop", ("stopped", "user_requested")),
        ("starting", "ctr.stop", ("stopped", "engine_error")),
        ("deleting", "ctr.remove", None),
        ("running", None, ("running", None)),
        ("failed", None, ("failed", None)),
    ],
)
def test_of_an_expired_account_only_what_was_begun_is_ended(
    reconciler: Reconciler, far: FarEnd, workspace: Any, before: str, verb: str | None, after: Any
) -> None:
    """An administrator's stop that got no answer would else refuse the next one for ever."""
    far.answers["ctr.list"] = "account"
    with numbers.holding() as work:
        workspace_id = workspace(before, work=work)
    reconciler.inspect_all()
    assert far.verbs() == ["ctr.list", *([verb] if verb else [])]
    found = database.execute_sql("SELECT status, status_reason FROM workspaces").fetchone()
    assert found == after
    assert far.calls[-1].args.get("id", workspace_id) == workspace_id
