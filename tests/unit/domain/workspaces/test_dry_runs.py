"""Exact resources, checked without a workspace: what is in the way, which GPUs, what of the quota is left."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from unit.gpu_host import GpuHost, lease, uuid
from unit.serving import FarEnd, make_template, make_workspace

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.workspaces import dry_runs
from svc.errors import NotFound, TemplateDisabled, ValidationFailed

GIB = 2**30


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    return GpuHost(tmp_path, monkeypatch)


def check(caller: Caller, resources: dict[str, Any] | None = None, **request: Any) -> dict[str, Any]:
    return dry_runs.of(caller, {"template": "base", "resources": resources or {}, **request})


def blocks(found: dict[str, Any]) -> list[tuple[str, str]]:
    assert found["allocatable_now"] is (not found["blocked_by"])
    assert all(block["message"] for block in found["blocked_by"])
    return [(block["code"], block["hint"]) for block in found["blocked_by"]]


def rows() -> list[int]:
    tables = ("workspaces", "gpu_leases", "ports", "operations", "audit")
    return [database.execute_sql(f"SELECT count(*) FROM {table}").fetchone()[0] for table in tables]


def test_what_is_possible_leaves_no_trace(ada: Caller, far: FarEnd, template: str, gpus: GpuHost) -> None:
    gpus.have(4)
    lease(0, make_workspace(ada.user_id, template, "other", status="running", gpu_count=1))
    before = rows()
    found = check(ada, {"cpu_limit": 1.5, "memory_bytes": GIB, "gpu_count": 2}, name="lab")
    assert blocks(found) == []
    assert [(gpu["index"], gpu["uuid"], gpu["model"]) for gpu in found["gpus"]] == [
        (1, uuid(1), "NVIDIA H100"), (2, uuid(2), "NVIDIA H100"),
    ]  # fmt: skip
    assert found["resources"] == {
        "cpu_limit": 1.5, "memory_bytes": GIB, "shm_bytes": None, "pids_limit": None, "gpu_count": 2,
        "gpu_mode": "exclusive",
    }  # fmt: skip
    assert (found["used"]["gpus"], found["after"]["gpus"], found["after"]["workspaces"]) == (1, 3, 2)
    assert found["image_status"] == "missing"
    assert rows() == before
    assert far.verbs() == [], "no agent is asked"


def test_everything_in_the_way_is_said_at_once(ada: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(2)
    lease(0, make_workspace(ada.user_id, template, status="running", gpu_count=1))
    database.execute_sql("UPDATE quotas SET max_workspaces = 1, max_memory_bytes = ?", (2 * GIB,))
    found = check(ada, {"memory_bytes": 4 * GIB, "gpu_count": 2}, name="lab")
    codes = dict(blocks(found))
    assert list(codes) == ["name_taken", "quota_exceeded", "gpu_unavailable"]
    assert [hint for code, hint in blocks(found) if code == "quota_exceeded"] == [
        "svc ws list",
        "svc ws create --template base --name lab --memory 2g --gpu-count 2 --gpu-mode exclusive",
    ]
    assert codes["gpu_unavailable"] == "svc ws stop lab"
    assert found["blocked_by"][-1]["action"]["path"] == "/api/workspaces/lab/stop"
    assert found["gpus"] == []
    assert found["remaining"]["workspaces"] == 0


def test_a_hint_is_a_create_and_never_an_edit(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(1, gpu0={"processes": [{"pid": os.getpid(), "used_bytes": 1}]})
    make_template(ada.user_id, "sharing", gpu={"allow_shared": True})
    ((code, hint),) = blocks(check(ada, {"gpu_count": 3, "memory_bytes": GIB}, template="sharing"))
    assert (code, hint) == (
        "gpu_unavailable",
        "svc ws create --template sharing --name sharing-1 --memory 1g --gpu-count 1 --gpu-mode exclusive",
    )
    make_template(ada.user_id, "base")
    gpus.have(1)
    lease(0, make_workspace(ada.user_id, "tpl-0000base", "w", status="running", gpu_count=1), "shared")
    ((_, hint),) = blocks(check(ada, {"gpu_count": 1}, template="sharing", name="two"))
    assert hint == "svc ws create --template sharing --name two --gpu-count 1 --gpu-mode shared"


def test_without_limits_a_policy_s_whole_limit_counts(ada: Caller, template: str) -> None:
    database.execute_sql("UPDATE quotas SET max_cpu = 4000, max_memory_bytes = ?", (8 * GIB,))
    found = check(ada)
    assert [code for code, _ in blocks(found)] == ["quota_exceeded"]
    assert (found["after"]["cpu"], found["remaining"]["memory_bytes"]) == (4.0, 0)


def test_what_a_create_refuses_is_refused(ada: Caller, bob: Caller, template: str) -> None:
    make_template(ada.user_id, "off", status="disabled")
    make_template(ada.user_id, "small", limits={"gpu_count": 1})
    with pytest.raises(NotFound):
        check(bob)
    with pytest.raises(TemplateDisabled):
        check(ada, template="off")
    with pytest.raises(ValidationFailed):
        check(ada, {"gpu_count": 2}, template="small")
    ports = [{"name": f"p{number}", "container_port": 80} for number in range(40)]
    with pytest.raises(ValidationFailed):
        check(ada, ports=ports)
