"""The idle policy's rules, on real rows: what is quiet, when something is due, what takes it back."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured
from unit.serving import make_template, make_workspace

from svc.db.connect import database, write
from svc.domain.gpus import hardware
from svc.domain.gpus import use as gpu_use
from svc.domain.principal import Caller
from svc.domain.workspaces import idle
from svc.domain.workspaces.idle import Use, Watched
from svc.errors import NotFound, WorkspaceNotRunning
from svc.host.ids import after, now

AT = "2026-01-01T00:00:00.000Z"
MINUTE = 60_000_000  # microseconds


def running(owner_id: int, name: str = "lab", policy: dict[str, Any] | None = None, **columns: Any) -> str:
    """A running workspace of a template with this policy; its id."""
    spec = {} if policy is None else {"idle": policy}
    template = make_template(owner_id, f"of-{name}", **spec)
    return make_workspace(owner_id, template, name, **{"status": "running", "status_since": AT} | columns)


def only() -> Watched:
    (row,) = idle.watched()
    return row


def since(workspace_id: str) -> str | None:
    found = database.execute_sql("SELECT idle_since FROM workspaces WHERE id = ?", (workspace_id,))
    value: str | None = found.fetchone()[0]
    return value


STOP = {"action": "stop", "after_minutes": 30}


def test_only_running_ones_with_a_policy_are_watched(ada: Caller) -> None:
    running(ada.user_id, "plain")
    running(ada.user_id, "off", {})
    running(ada.user_id, "ended", STOP, status="stopped")
    watched = running(ada.user_id, "lab", STOP)
    row = only()
    assert (row.id, row.owner, row.action, row.after_minutes, row.has_ports) == (
        watched,
        "ada",
        "stop",
        30,
        0,
    )


@pytest.mark.parametrize(
    ("before", "use", "quiet"),
    [
        (None, Use(60, 0, 0, 0), False),
        (Use(0, 0, 0, 0), Use(60, 0, 0, 0), True),
        (Use(0, 5, 9, 0), Use(60, 5 + MINUTE // 100, 9, 0), True),
        (Use(0, 5, 9, 0), Use(60, 5 + MINUTE // 10, 9, 0), False),
        (Use(0, 5, 9, 0), Use(60, 4, 9, 0), False),
        (Use(0, 0, 9, 0), Use(60, 0, 10, 0), False),
        (Use(0, 0, 9, 0), Use(60, 0, 0, 0), False),
        (Use(0, 0, 9, 0), Use(60, 0, 9, 1), False),
        (Use(60, 0, 0, 0), Use(60, 0, 0, 0), False),
    ],
)
def test_what_is_quiet(before: Use | None, use: Use, quiet: bool) -> None:
    assert idle.is_quiet(before, use) is quiet


def test_quiet_begins_with_the_first_look_and_is_due_after_the_minutes(ada: Caller) -> None:
    workspace = running(ada.user_id, policy=STOP)
    assert idle.judge(only(), quiet=True, at=AT) is None
    assert since(workspace) == AT
    assert idle.judge(only(), quiet=True, at=after(AT, 29 * 60)) is None
    assert idle.judge(only(), quiet=True, at=after(AT, 30 * 60)) == idle.STOP
    assert since(workspace) == AT
    assert idle.judge(only(), quiet=False, at=after(AT, 31 * 60)) is None
    assert since(workspace) is None


def test_a_run_that_ended_meanwhile_is_not_marked(ada: Caller) -> None:
    workspace = running(ada.user_id, policy=STOP)
    before = only()
    with write():
        database.execute_sql("UPDATE workspaces SET status_since = ?", (after(AT, 1),))
    idle.judge(before, quiet=True, at=after(AT, 60))
    assert since(workspace) is None
    assert idle.present(before) is None


def test_a_touch_takes_it_back_and_writes_nothing_else(ada: Caller) -> None:
    workspace = running(ada.user_id, policy=STOP)
    idle.judge(only(), quiet=True, at=AT)
    idle.touch(workspace)
    assert since(workspace) is None
    changes = database.connection().total_changes
    for _ in range(100):
        idle.touch(workspace)
    idle.touch("ws-gone")
    assert database.connection().total_changes == changes


def test_its_owner_holds_the_policy_off(ada: Caller, bob: Caller) -> None:
    workspace = running(ada.user_id, policy=STOP)
    idle.judge(only(), quiet=True, at=AT)
    earliest = after(now(), 5 * 3600)
    record = idle.extend(ada, "lab", 5)
    assert record["id"] == workspace
    row = only()
    assert row.keep_until is not None
    assert earliest <= row.keep_until <= after(now(), 5 * 3600)
    assert not idle.is_due(row, now())
    assert idle.is_due(row, row.keep_until)
    with pytest.raises(NotFound):
        idle.extend(bob, "lab", 5)


def test_what_does_not_run_is_neither_idle_nor_extended(ada: Caller) -> None:
    workspace = running(ada.user_id, policy=STOP, status="stopped", idle_since=AT)
    idle.forget_ended()
    assert since(workspace) is None
    with pytest.raises(WorkspaceNotRunning):
        idle.extend(ada, "lab", 1)


def test_the_audit_says_it(ada: Caller) -> None:
    running(ada.user_id, policy=STOP)
    idle.judge(only(), quiet=True, at=AT)
    idle.notify(only())
    found = database.execute_sql(
        "SELECT via, action, target, outcome, detail_json FROM audit ORDER BY id DESC"
    )
    via, action, target, outcome, detail = found.fetchone()
    assert (via, action, target, outcome) == ("worker", "workspace.idle", only().id, "stop")
    assert json.loads(detail) == {"since": AT, "after_minutes": 30, "target_name": "lab"}


def test_gpus(ada: Caller, tmp_path: Path) -> None:
    """One at work, one that is shared, one without a figure, and one that is gone."""
    container = "c" * 64
    workspace = running(ada.user_id, policy=STOP, container_id=container)
    assert idle.gpus_are_quiet(only())

    def held(mode: str, **facts: Any) -> bool:
        gpu = {
            "uuid": "GPU-1", "model": "Fake", "vram_bytes": 2**34, "compute_capability": "9.0", "mig": False,
        } | facts  # fmt: skip
        described = {"driver": "550.1", "max_cuda": "12.4", "gpus": [gpu]}
        (tmp_path / "gpus.json").write_text(json.dumps(described))
        configured(gpu_provider=str(tmp_path / "gpus.json"))
        with write():
            database.execute_sql("DELETE FROM gpu_leases")
            database.execute_sql(
                "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at) VALUES ('GPU-1', ?, ?, ?)",
                (workspace, mode, AT),
            )
        return idle.gpus_are_quiet(only())

    somebodys = [{"pid": os.getpid(), "used_bytes": 1}]
    try:
        assert held("exclusive", utilization=1)
        assert held("exclusive", utilization=1, processes=somebodys)
        assert not held("exclusive", utilization=2)
        assert held("shared", utilization=80)
        assert held("shared", utilization=80, processes=somebodys)
        assert held("exclusive")
        assert not held("exclusive", uuid="GPU-2", utilization=0)
    finally:
        configured(gpu_provider=hardware.NONE)
    assert not idle.gpus_are_quiet(only())


def test_a_process_of_its_own_on_a_shared_gpu(ada: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = running(ada.user_id, policy=STOP, container_id="c" * 64)
    with write():
        database.execute_sql(
            "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at) VALUES ('GPU-1', ?, 'shared', ?)",
            (workspace, AT),
        )
    gpu = hardware.Gpu("GPU-1", "Fake", None, None, False, 0)
    monkeypatch.setattr(hardware, "inventory", lambda: hardware.Hardware("file", None, None, [gpu]))
    monkeypatch.setattr(hardware, "utilization", lambda: {"GPU-1": 50})
    monkeypatch.setattr(gpu_use, "of_container", lambda _: [gpu_use.Use(5, "ada", None, "GPU-1")])
    assert not idle.gpus_are_quiet(only())
    monkeypatch.setattr(gpu_use, "of_container", lambda _: [gpu_use.Use(5, "ada", None, "GPU-2")])
    assert idle.gpus_are_quiet(only())
