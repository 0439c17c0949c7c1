"""Quotas: a named policy with a default; null is unlimited."""

from __future__ import annotations

import json
import threading
from typing import Any

import pytest
from unit.serving import make_workspace

from svc.db.connect import close_database, database, write
from svc.domain.principal import Caller
from svc.domain.quotas import quotas
from svc.domain.workspaces import states, workspaces
from svc.domain.workspaces.transitions import claim_start
from svc.errors import QuotaExceeded
from svc.host.ids import now

GIB = 2**30


@pytest.fixture
def limits(ada: Caller) -> Any:
    """Set the default policy's numbers, as its row counts them."""

    def set_(**columns: int | None) -> None:
        for column, value in columns.items():
            database.execute_sql(f"UPDATE quotas SET {column} = ?", (value,))

    return set_


@pytest.fixture
def running(ada: Caller, template: str) -> Any:
    """Make a workspace of ada's, which runs unless told otherwise; its id."""

    def make(name: str, status: str = "running", **columns: Any) -> str:
        return make_workspace(ada.user_id, template, name, status=status, **columns)

    return make


def refusal_of(workspace_id: str) -> QuotaExceeded:
    workspace = states.of_id(workspace_id)
    assert workspace is not None
    with pytest.raises(QuotaExceeded) as caught, write():
        quotas.require_start(workspace.claim)
    return caught.value


def starts(workspace_id: str) -> bool:
    workspace = states.of_id(workspace_id)
    assert workspace is not None
    with write():
        quotas.require_start(workspace.claim)
    return True


def test_everybody_has_the_default_until_given_another(ada: Caller, bob: Caller) -> None:
    assert quotas.of(ada.user_id) == quotas.Quota("default", *[None] * 6)
    database.execute_sql("INSERT INTO quotas (name, max_gpus, max_image_bytes) VALUES ('small', 1, 1000)")
    database.execute_sql("UPDATE users SET quota = 'small' WHERE id = ?", (ada.user_id,))
    assert quotas.of(ada.user_id)._asdict() == {
        "name": "small", "max_workspaces": None, "max_running": None, "max_gpus": 1, "max_cpu": None,
        "max_memory_bytes": None, "max_image_bytes": 1000,
    }  # fmt: skip
    assert quotas.of(bob.user_id).max_image_bytes is None


def test_images_over_the_quota_are_refused_in_numbers() -> None:
    quotas.require_image_bytes(None, 10**12, 10**12)
    quotas.require_image_bytes(2**30, 2**29, 2**29)
    with pytest.raises(QuotaExceeded) as caught:
        quotas.require_image_bytes(2**30, 2**29, 2**29 + 1)
    assert caught.value.details == {
        "resource": "image_bytes", "limit": 2**30, "used": 2**29, "requested": 2**29 + 1,
    }  # fmt: skip
    assert "1.0 GiB" in caught.value.message
    assert caught.value.hint == "svc image prune"


def test_the_record_counts_in_cores(ada: Caller, limits: Any) -> None:
    limits(max_cpu=1500)
    assert quotas.record(quotas.of(ada.user_id))["max_cpu"] == 1.5
    assert quotas.cores(None) is None


def test_what_is_used(ada: Caller, bob: Caller, template: str, running: Any) -> None:
    running("one", cpu_limit=1500, memory_bytes=GIB, gpu_count=2)
    running("two", "starting", cpu_limit=500, memory_bytes=GIB, gpu_count=1)
    running("off", "stopped", cpu_limit=9000, memory_bytes=GIB, gpu_count=4)
    lost = running("lost", "failed", cpu_limit=9000, gpu_count=4)
    database.execute_sql("INSERT INTO gpu_leases VALUES ('GPU-1', ?, 'exclusive', ?)", (lost, now()))
    make_workspace(bob.user_id, template, "his", status="running", cpu_limit=7000, gpu_count=1)
    quota = quotas.of(ada.user_id)
    assert quotas.used(ada.user_id, quota) == (4, 2, 4, 2000, 2 * GIB)
    assert quotas.used(ada.user_id, quota, without=lost) == (3, 2, 3, 2000, 2 * GIB)
    assert quotas.used(0, quota) == (0, 0, 0, 0, 0)


def test_a_gpu_counts_for_as_long_as_its_lease_whatever_the_row_asks_for(ada: Caller, running: Any) -> None:
    edited = running("edited", gpu_count=0)
    database.execute_sql("INSERT INTO gpu_leases VALUES ('GPU-1', ?, 'exclusive', ?)", (edited, now()))
    assert quotas.used(ada.user_id, quotas.of(ada.user_id)).gpus == 1


def test_room_for_workspaces(ada: Caller, running: Any, limits: Any) -> None:
    running("one", "stopped")
    quotas.require_room(ada.user_id)
    limits(max_workspaces=2)
    quotas.require_room(ada.user_id)
    limits(max_workspaces=1)
    with pytest.raises(QuotaExceeded) as caught:
        quotas.require_room(ada.user_id)
    assert caught.value.details == {"resource": "workspaces", "limit": 1, "used": 1, "requested": 1}
    assert caught.value.message == "your quota (default) has 1 workspace; you have 1"
    assert caught.value.hint == "svc ws list"


def test_a_set_up_is_refused_before_anything_is_fetched(ada: Caller, running: Any, limits: Any) -> None:
    running("one", "stopped")
    limits(max_workspaces=1)
    with pytest.raises(QuotaExceeded):
        workspaces.set_up(ada, {"name": "two", "template": "base"})
    assert database.execute_sql("SELECT count(*) FROM operations").fetchone() == (0,)


def test_twenty_claims_at_once_against_room_for_two(running: Any, limits: Any) -> None:
    limits(max_running=2)
    found = [states.of_id(running(f"w{number}", "stopped")) for number in range(20)]
    together = threading.Barrier(len(found))
    through: list[str] = []
    refused: list[dict[str, Any]] = []

    def start(workspace: Any) -> None:
        together.wait()
        try:
            claim_start(workspace, 7)
            through.append(workspace.name)
        except QuotaExceeded as error:
            refused.append(error.details)
        finally:
            close_database()

    threads = [threading.Thread(target=start, args=(workspace,)) for workspace in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = database.execute_sql("SELECT name FROM workspaces WHERE status = 'starting'").fetchall()
    assert sorted(name for [name] in rows) == sorted(through)
    assert len(through) == 2
    assert refused == [{"resource": "running", "limit": 2, "used": 2, "requested": 1}] * 18


def test_the_one_that_starts_counts_once(running: Any, limits: Any) -> None:
    limits(max_running=2)
    running("one")
    running("off", "stopped")
    assert starts(running("two", "starting"))
    refused = refusal_of(running("three", "starting"))
    assert refused.details == {"resource": "running", "limit": 2, "used": 2, "requested": 1}
    assert refused.message.startswith("your quota (default) has 2 running workspaces, 2 taken")
    assert refused.hint == "svc ws stop one"  # two only starts: it cannot be stopped yet


def test_nothing_to_stop(running: Any, limits: Any) -> None:
    limits(max_running=0)
    assert refusal_of(running("one", "starting")).hint == "svc ws list"


def test_gpus(running: Any, limits: Any) -> None:
    limits(max_gpus=2)
    running("cpu-only")
    running("train", gpu_count=1)
    assert starts(running("one", "starting", gpu_count=1))
    refused = refusal_of(running("two", "starting", gpu_count=1))
    assert refused.details == {"resource": "gpus", "limit": 2, "used": 2, "requested": 1}
    assert refused.hint == "svc ws stop train"
    refused = refusal_of(running("four", "starting", gpu_count=4))
    assert refused.message == "four requests 4 GPUs; your quota (default) has 2 GPUs"
    assert refused.hint == 'svc ws edit four --file - <<< \'{"resources": {"gpu_count": 2}}\''
    limits(max_gpus=0)
    assert starts(running("none", "starting", gpu_count=0))


def test_cores_and_memory(running: Any, limits: Any) -> None:
    limits(max_cpu=4000, max_memory_bytes=4 * GIB)
    running("small", cpu_limit=500, memory_bytes=GIB)
    running("large", cpu_limit=1500, memory_bytes=2 * GIB)
    assert starts(running("fits", "starting", cpu_limit=2000, memory_bytes=GIB))
    refused = refusal_of(running("cores", "starting", cpu_limit=2500, memory_bytes=1))
    assert refused.details == {"resource": "cpu", "limit": 4.0, "used": 4.0, "requested": 2.5}
    assert "has 4 cores, 4 taken; cores needs 2.5 more" in refused.message
    assert refused.hint == "svc ws stop large"
    limits(max_cpu=None)
    refused = refusal_of(running("memory", "starting", memory_bytes=GIB))
    assert refused.details["resource"] == "memory_bytes"
    assert "has 4.0 GiB of memory, 4.0 GiB taken" in refused.message


def test_a_workspace_without_a_limit_is_told_how_to_have_one(running: Any, limits: Any) -> None:
    limits(max_cpu=4000, max_memory_bytes=4 * GIB)
    running("small", cpu_limit=1500, memory_bytes=GIB)
    wide = running("wide", "stopped")
    refused = refusal_of(wide)
    assert refused.details == {"resource": "cpu", "limit": 4.0, "used": 1.5, "requested": None}
    assert refused.message.startswith("wide has no CPU limit and no memory limit, and your quota (default)")
    command, _, text = refused.hint.partition(" <<< ")
    assert command == "svc ws edit wide --file -"
    assert json.loads(text.strip("'")) == {"resources": {"cpu_limit": 2.5, "memory_bytes": 3 * GIB}}
    database.execute_sql("UPDATE workspaces SET cpu_limit = 2500 WHERE id = ?", (wide,))
    assert refusal_of(wide).details["resource"] == "memory_bytes"
    database.execute_sql("UPDATE workspaces SET memory_bytes = ? WHERE id = ?", (3 * GIB, wide))
    assert starts(wide)


def test_one_that_runs_without_a_limit_has_all_of_it(running: Any, limits: Any) -> None:
    """It was started before there was a policy."""
    running("wide")
    limits(max_cpu=4000)
    refused = refusal_of(running("next", "starting", cpu_limit=1000))
    assert refused.details == {"resource": "cpu", "limit": 4.0, "used": 4.0, "requested": 1.0}
    assert refused.hint == "svc ws stop wide"
    assert refusal_of(running("also", "starting")).hint == "svc ws stop wide"


def test_nothing_helps_where_the_policy_has_none(running: Any, limits: Any) -> None:
    limits(max_memory_bytes=0)
    assert refusal_of(running("one", "starting", memory_bytes=GIB)).hint == "svc ws capacity"
    assert refusal_of(running("two", "starting")).details["resource"] == "memory_bytes"
