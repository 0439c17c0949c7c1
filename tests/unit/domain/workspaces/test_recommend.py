"""The levels of a recommendation; it reserves nothing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from unit.gpu_host import GpuHost, lease
from unit.serving import make_template, make_workspace

from svc.db.connect import database
from svc.domain.principal import Caller
from svc.domain.quotas import policies as quota_policies
from svc.domain.workspaces import capacity, commands, recommend
from svc.domain.workspaces.capacity import Host
from svc.errors import NotFound, TemplateDisabled
from svc.limits import GPU_USE_CASES

GIB = 2**30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """32 cores, 256 GiB: the figures do not depend on where the test runs."""
    monkeypatch.setattr(capacity, "host", lambda: Host(32, 256 * GIB))


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    return GpuHost(tmp_path, monkeypatch)


def figures(caller: Caller, use_case: str, template: str = "base") -> tuple[Any, ...]:
    """Its GPUs, cores, GiB, and what stands in the way."""
    found = recommend.of(caller, template, use_case)
    value = found["resources"]
    assert found["allocatable_now"] is (found["blocked_by"] is None)
    assert bool(found["message"]) is bool(found["hint"]) is (not found["allocatable_now"])
    return value["gpu_count"], value["cpu_limit"], value["memory_bytes"] / GIB, found["blocked_by"]


def test_a_host_without_gpus(ada: Caller, template: str) -> None:
    assert figures(ada, "none") == (0, 4.0, 32, None)
    for level in GPU_USE_CASES[1:]:
        assert figures(ada, level) == (0, 4.0, 32, "no_gpu")


def test_the_levels_of_a_host_with_eight(ada: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(8)
    assert {level: figures(ada, level) for level in GPU_USE_CASES} == {
        "none": (0, 4.0, 32, None), "light": (1, 4.0, 32, None), "standard": (1, 4.0, 32, None),
        "heavy": (4, 16.0, 128, None), "max": (8, 32.0, 256, None),
    }  # fmt: skip
    for number in range(3):
        lease(number, make_workspace(ada.user_id, template, f"w{number}", status="running", gpu_count=1))
    assert figures(ada, "heavy")[0] == 3  # half of five, rounded up
    assert figures(ada, "max")[0] == 5
    assert database.execute_sql("SELECT count(*) FROM gpu_leases").fetchone() == (3,)


def test_standard_is_the_template_s_own_number(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(4)
    make_template(ada.user_id, "two", defaults={"gpu_count": 2})
    assert figures(ada, "standard", "two")[0] == 2
    make_template(ada.user_id, "many", defaults={"gpu_count": 9})
    assert figures(ada, "standard", "many") == (4, 32.0, 256, None)  # no more than there are


def test_light_shares_where_the_template_allows(ada: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(1)
    make_template(ada.user_id, "sharing", gpu={"allow_shared": True})
    lease(0, make_workspace(ada.user_id, template, status="running", gpu_count=1), "shared")
    found = recommend.of(ada, "sharing", "light")
    assert (found["resources"]["gpu_mode"], found["blocked_by"]) == ("shared", None)
    assert recommend.of(ada, "sharing", "standard")["resources"]["gpu_mode"] == "exclusive"
    assert figures(ada, "standard", "sharing")[3] == "gpu_busy"
    assert recommend.of(ada, "base", "light")["resources"]["gpu_mode"] == "exclusive"
    assert figures(ada, "light")[3] == "gpu_busy"
    make_template(ada.user_id, "always", gpu={"allow_shared": True}, defaults={"gpu_mode": "shared"})
    assert recommend.of(ada, "always", "standard")["resources"]["gpu_mode"] == "shared"


def test_all_gpus_taken(ada: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(2, gpu1={"processes": [{"pid": os.getpid(), "used_bytes": 1}]})
    lease(0, make_workspace(ada.user_id, template, status="running", gpu_count=1))
    for level in GPU_USE_CASES[1:]:
        assert figures(ada, level) == (1, 16.0, 128, "gpu_busy")
    assert figures(ada, "none")[3] is None


@pytest.mark.parametrize(
    "needs", [{"min_vram_bytes": 2**40}, {"min_compute_capability": "9.9"}, {"min_cuda": "13.0"}]
)
def test_no_gpu_is_good_enough(ada: Caller, gpus: GpuHost, needs: dict[str, Any]) -> None:
    gpus.have(2)
    make_template(ada.user_id, "greedy", gpu=needs)
    assert figures(ada, "standard", "greedy") == (0, 4.0, 32, "no_gpu")


def test_a_gpu_without_a_cdi_name_is_none(ada: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(2, named=0)
    assert figures(ada, "max")[3] == "no_gpu"


def test_the_template_s_limits(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(4)
    limits = {
        "gpu_count": 2,
        "cpu_limit": 3.5,
        "memory_bytes": 3 * 2**29,
        "shm_bytes": 2**26,
        "pids_limit": 99,
    }
    make_template(ada.user_id, "small", limits=limits)
    assert figures(ada, "max", "small") == (2, 3.5, 1, None)
    value = recommend.of(ada, "small", "max")["resources"]
    assert (value["shm_bytes"], value["pids_limit"]) == (2**26, 99)
    make_template(ada.user_id, "never", limits={"gpu_count": 0})
    assert figures(ada, "light", "never") == (0, 4.0, 32, "template")


def test_what_the_quota_has_left(ada: Caller, boss: Caller, template: str, gpus: GpuHost) -> None:
    gpus.have(4)
    make_workspace(ada.user_id, template, status="running", cpu_limit=1000, memory_bytes=GIB, gpu_count=1)
    quota_policies.put(boss, "default", {"max_gpus": 3, "max_cpu": 3.5, "max_memory_bytes": 5 * GIB})
    assert figures(ada, "max") == (2, 2.5, 4, None)
    quota_policies.put(boss, "default", {"max_gpus": 1})
    assert figures(ada, "max") == (0, 4.0, 32, "quota")
    assert figures(ada, "none")[3] is None
    for full in ({"max_running": 1}, {"max_workspaces": 1}, {"max_cpu": 1.0}, {"max_memory_bytes": GIB}):
        quota_policies.put(boss, "default", full)
        assert figures(ada, "none")[3] == "quota"
        assert figures(ada, "light")[3] == "quota"


def test_the_template_s_own_shm_and_pids(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(1)
    make_template(ada.user_id, "own", defaults={"shm_bytes": 2**20, "pids_limit": 50})
    value = recommend.of(ada, "own", "light")["resources"]
    assert (value["shm_bytes"], value["pids_limit"]) == (2**20, 50)
    make_template(ada.user_id, "base")
    assert recommend.of(ada, "base", "light")["resources"]["shm_bytes"] == 64 * GIB
    assert recommend.of(ada, "base", "none")["resources"]["shm_bytes"] is None


def test_a_small_machine(ada: Caller, template: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capacity, "host", lambda: Host(2, 4 * GIB - 1))
    assert figures(ada, "none") == (0, 1.0, 511 / 1024, None)


def test_the_other_levels_and_the_command(ada: Caller, gpus: GpuHost) -> None:
    gpus.have(4)
    template = make_template(ada.user_id, "torch", gpu={"allow_shared": True})
    make_workspace(ada.user_id, template, "torch-1")
    found = recommend.of(ada, "torch", "light")
    assert found["template"] == {"id": template, "name": "torch"}
    assert [one["gpu_use_case"] for one in found["alternatives"]] == ["none", "standard", "heavy", "max"]
    assert all(one["allocatable_now"] for one in found["alternatives"])
    assert found["command"] == (
        "svc ws setup --template torch --name torch-2 --cpus 8 --memory 64g --shm-size 16g"
        " --gpu-count 1 --gpu-mode shared && svc ws start torch-2"
    )
    assert recommend.of(ada, template, "none")["command"] == (
        f"svc ws setup --template {template} --name torch-2 --cpus 4 --memory 32g && svc ws start torch-2"
    )
    make_template(ada.user_id, "two", defaults={"gpu_count": 2})
    assert " --gpu-count 0 &&" in recommend.of(ada, "two", "none")["command"]


@pytest.mark.parametrize(("count", "text"), [(3 * GIB, "3g"), (2**29, "512m"), (2**20 + 1, "1048577")])
def test_sizes_as_the_command_line_takes_them(count: int, text: str) -> None:
    assert commands._size(count) == text


def test_a_template_that_cannot_be_used(ada: Caller, bob: Caller, template: str) -> None:
    with pytest.raises(NotFound):
        recommend.of(bob, template, "light")
    make_template(ada.user_id, "off", status="disabled")
    with pytest.raises(TemplateDisabled):
        recommend.of(ada, "off", "light")


def test_the_reason_has_a_message_and_the_next_command(ada: Caller, template: str, gpus: GpuHost) -> None:
    def reason(level: str) -> tuple[str, str]:
        found = recommend.of(ada, "base", level)
        return found["message"], found["hint"]

    assert reason("light") == ("this host has no GPU that suits the template", "svc servers hardware")
    gpus.have(1)
    lease(0, make_workspace(ada.user_id, template, "busy", status="running", gpu_count=1))
    assert reason("light") == ("1 GPU of 1 needed, and none free", "svc ws capacity")
    database.execute_sql("UPDATE quotas SET max_running = 1, max_gpus = 1")
    message, hint = reason("none")
    assert "1 running workspace" in message
    assert hint == "svc ws stop busy"
    assert "has 1 GPU, 1 taken" in reason("light")[0] or "1 running workspace" in reason("light")[0]
