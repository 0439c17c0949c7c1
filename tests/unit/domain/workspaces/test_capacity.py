"""Quota and free headroom, and who holds each GPU."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit.gpu_host import VRAM, GpuHost, lease, uuid
from unit.serving import make_workspace

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.domain.workspaces import capacity


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    return GpuHost(tmp_path, monkeypatch)


def states(caller: Caller) -> list[Any]:
    return [(gpu["state"], gpu["mode"]) for gpu in capacity.gpus(caller)]


def test_a_host_without_gpus(ada: Caller) -> None:
    found = capacity.of(ada)
    assert set(found) == {"quota", "used", "remaining", "host", "gpus"}
    assert found["gpus"] == []
    assert found["host"] == {
        "cpus": os.cpu_count(), "memory_bytes": capacity.host().memory_bytes, "gpus": 0, "gpus_free": 0,
    }  # fmt: skip
    assert found["host"]["memory_bytes"] > 2**20
    assert found["remaining"] == dict.fromkeys(found["used"])


def test_used_and_left(ada: Caller, boss: Caller, template: str) -> None:
    quota_policies.put(boss, "default", {"max_cpu": 4, "max_workspaces": 2})
    make_workspace(ada.user_id, template, status="running", cpu_limit=1000, memory_bytes=5)
    found = capacity.of(ada)
    assert found["quota"]["max_cpu"] == 4.0
    assert (found["used"]["cpu"], found["used"]["memory_bytes"]) == (1.0, 5)
    assert (found["remaining"]["cpu"], found["remaining"]["workspaces"]) == (3.0, 1)


def test_who_holds_which_gpu(ada: Caller, bob: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(5)
    mine = make_workspace(ada.user_id, template, "mine", status="running", gpu_count=1)
    his = make_workspace(bob.user_id, template, "his", status="running", gpu_count=2)
    lease(0, mine)
    lease(1, his)
    lease(2, mine, "shared")
    lease(2, his, "shared")
    gpus.have(
        5, gpu0={"utilization": 12, "used_bytes": 99},
        gpu3={"processes": [{"pid": os.getpid(), "used_bytes": 7}]},
    )  # fmt: skip
    assert states(ada) == [
        ("leased", "exclusive"), ("leased", "exclusive"), ("shared", "shared"), ("busy", None),
        ("free", None),
    ]  # fmt: skip
    first, second, third, fourth, last = capacity.gpus(ada)
    since = dict(database.execute_sql("SELECT gpu, taken_at FROM gpu_leases WHERE gpu <> ?", (uuid(2),)))
    own = {"owner": "ada", "workspace": "mine", "workspace_id": mine, "outside": False, "mine": True}
    bobs = {"owner": "bob", "workspace": None, "workspace_id": None, "outside": False, "mine": False}
    assert first == {
        "index": 0, "uuid": uuid(0), "model": "NVIDIA H100", "vram_bytes": VRAM, "state": "leased",
        "mode": "exclusive", "used_bytes": 99, "use_percent": 12, "processes": [],
        "holders": [own | {"since": since[uuid(0)]}],
    }  # fmt: skip
    assert second["holders"] == [bobs | {"since": since[uuid(1)]}]
    assert (second["used_bytes"], second["use_percent"]) == (None, None)
    assert {holder["workspace"] for holder in third["holders"]} == {"mine", None}
    assert fourth["processes"] == [
        {"pid": os.getpid(), "owner": fourth["holders"][0]["owner"], "used_bytes": 7}
    ]
    assert [(one["outside"], one["workspace"]) for one in fourth["holders"]] == [(True, None)]
    assert last["holders"] == []
    assert (capacity.of(ada)["host"]["gpus"], capacity.of(ada)["host"]["gpus_free"]) == (5, 1)


def test_administrators_see_whose_workspace_it_is(
    bob: Caller, boss: Caller, template: str, gpus: GpuHost
) -> None:
    """To stop it; a token of theirs does not."""
    gpus.have(1)
    his = make_workspace(bob.user_id, template, "his", status="running", gpu_count=1)
    lease(0, his)
    (holder,) = capacity.gpus(boss)[0]["holders"]
    assert (holder["workspace"], holder["workspace_id"], holder["mine"]) == ("his", his, False)
    (holder,) = capacity.gpus(replace(boss, kind="pat"))[0]["holders"]
    assert (holder["workspace"], holder["workspace_id"]) == (None, None)


def test_a_leased_gpu_that_somebody_else_uses_too(ada: Caller, template: str, gpus: GpuHost) -> None:
    lease(0, make_workspace(ada.user_id, template, status="running", gpu_count=1))
    gpus.have(1, gpu0={"processes": [{"pid": os.getpid(), "used_bytes": None}] * 2})
    [gpu] = capacity.gpus(ada)
    assert gpu["state"] == "leased"
    assert [one["outside"] for one in gpu["holders"]] == [False, True]


def test_a_gpu_that_is_lost_and_one_without_a_name(ada: Caller, template: str, gpus: GpuHost) -> None:
    lease(7, make_workspace(ada.user_id, template, status="running", gpu_count=1))
    gpus.have(2, named=1)
    assert [one["state"] for one in capacity.gpus(ada)] == ["free", "unusable", "lost"]
    assert capacity.gpus(ada)[2]["model"] is None
    assert capacity.of(ada)["host"]["gpus"] == 2


def test_a_gpu_that_is_cut_is_shown_by_its_instances(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(2, gpu0={"mig": True}, gpu1={"mig": True, "uuid": "MIG-1", "minor": 0, "instance": 0})
    assert [one["uuid"] for one in capacity.gpus(ada)] == ["MIG-1"]
