"""Leases: who gets which GPU, who does not and why."""

from __future__ import annotations

import json
import os
from typing import Any

import pytest
from peewee import IntegrityError
from unit.domain.gpu_rows import Gpus, device, uuid
from unit.serving import make_template, make_workspace

from svc import errors
from svc.db.connect import database, write
from svc.domain.principal import Caller
from svc.domain.workspaces import leases, states
from svc.domain.workspaces.states import Workspace


def workspace(workspace_id: str) -> Workspace:
    found = states.of_id(workspace_id)
    assert found is not None
    return found


def take(workspace_id: str) -> list[str]:
    """As a start does it."""
    offer = leases.offer()
    with write():
        return leases.take(workspace(workspace_id), offer)


@pytest.fixture
def make(ada: Caller, template: str) -> Any:
    """make(name, gpu_count, ...) -> the id of a workspace of ada's."""

    def created(name: str, gpu_count: int = 1, owner_id: int = ada.user_id, **columns: Any) -> str:
        return make_workspace(
            owner_id, columns.pop("template", template), name, gpu_count=gpu_count, **columns
        )

    return created


def test_nobody_else_has_what_is_taken(gpus: Gpus, make: Any) -> None:
    first, second = take(make("one", 2)), take(make("two", 2))
    assert sorted(first + second) == [uuid(number) for number in range(4)]
    assert leases.of(make("three", 1)) == []
    with pytest.raises(errors.GpuUnavailable):
        take("ws-000three")
    leases.release("ws-00000one")
    assert take("ws-000three") == first[:1]
    assert leases.any_held()


def test_who_wants_none_gets_none(gpus: Gpus, make: Any) -> None:
    assert take(make("one", 0)) == []
    assert not leases.any_held()


def test_a_start_gives_up_what_an_earlier_one_had(gpus: Gpus, make: Any) -> None:
    lab = make("lab", 4)
    assert take(lab) == take(lab)
    assert len(leases.of(lab)) == 4


def test_a_driver_that_fails_is_not_a_host_without_gpus(gpus: Gpus, make: Any) -> None:
    gpus.unreadable()
    with pytest.raises(
        errors.GpuUnavailable, match=r"asks for 1 GPU but .* does not describe GPUs"
    ) as caught:
        take(make("lab", 1))
    assert caught.value.hint == "sudo svc admin doctor"


def test_the_refusal_names_the_holders_and_the_way_out(
    gpus: Gpus, make: Any, ada: Caller, bob: Caller
) -> None:
    make_template(bob.user_id, "bobs")
    take(make("bobs", 3, owner_id=bob.user_id))
    gpus.used(3, os.getpid())
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("lab", 2))
    error = caught.value
    assert error.message == "lab asks for 2 GPUs and none is free"
    assert error.hint == "svc ws capacity"
    assert (error.details["requested"], error.details["free"]) == (2, 0)
    holders = error.details["holders"]
    assert [(row["gpu"], row["mode"], row["outside"]) for row in holders] == [
        (uuid(0), "exclusive", False), (uuid(1), "exclusive", False), (uuid(2), "exclusive", False),
        (uuid(3), None, True),
    ]  # fmt: skip
    assert {row["owner"] for row in holders[:3]} == {"bob"}
    assert leases.of("ws-00000lab") == []


def test_ones_own_can_be_stopped_for_it(gpus: Gpus, make: Any) -> None:
    take(make("big", 4))
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("lab"))
    assert caught.value.hint == "svc ws stop big"


def test_more_than_the_host_has(gpus: Gpus, make: Any) -> None:
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("lab", 9))
    assert caught.value.message == "lab asks for 9 GPUs and this host has 4"
    assert caught.value.hint == """svc ws edit lab --file - <<< '{"resources": {"gpu_count": 4}}'"""
    gpus.fakes = []
    gpus.write()
    with pytest.raises(errors.GpuUnavailable, match="this host has no GPU"):
        take("ws-00000lab")


def test_use_outside_svc_is_avoided(gpus: Gpus, make: Any) -> None:
    gpus.used(0, os.getpid())
    assert take(make("lab", 3)) == [uuid(1), uuid(2), uuid(3)]
    assert take(make("two", 0)) == []


def test_what_the_template_needs(gpus: Gpus, make: Any, ada: Caller) -> None:
    gpus.fakes[0]["vram_bytes"] = 2**34
    gpus.fakes[1]["compute_capability"] = "8.0"
    gpus.write()
    needs = {"min_vram_bytes": 2**35, "min_compute_capability": "9.0", "min_cuda": "12.4"}
    large = make_template(ada.user_id, "large", gpu=needs)
    with pytest.raises(errors.GpuUnavailable, match="this host has 2 like the template needs"):
        take(make("three", 3, template=large))
    assert take(make("two", 2, template=large)) == [uuid(2), uuid(3)]
    newer = make_template(ada.user_id, "newer", gpu={"min_cuda": "12.10"})
    with pytest.raises(
        errors.GpuUnavailable, match=r"needs CUDA 12[.]10, and this host's driver supports up to"
    ):
        take(make("new", 1, template=newer))


def test_no_more_memory_than_needed(gpus: Gpus, make: Any) -> None:
    """The large ones are kept for whom needs them."""
    gpus.fakes[2]["vram_bytes"] = 2**34
    gpus.write()
    assert take(make("lab", 1)) == [uuid(2)]


def test_a_gpu_without_a_cdi_name_is_not_handed_out(gpus: Gpus, make: Any) -> None:
    gpus.devices = [device(0)]
    gpus.write()
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("two", 2))
    assert "the CDI specification has no device for GPU-1" in caught.value.message
    assert caught.value.hint == "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
    assert take(make("one", 1)) == [uuid(0)]


def test_a_gpu_that_is_cut_is_not_handed_out_whole(gpus: Gpus, make: Any) -> None:
    for fake in gpus.fakes[:3]:
        fake["mig"] = True
    gpus.write()
    assert take(make("one", 1)) == [uuid(3)]


def test_sharing(gpus: Gpus, make: Any, ada: Caller) -> None:
    """Those who share join one another, the emptiest GPU first; nobody joins an exclusive holder."""
    gpus.fakes = gpus.fakes[:3]
    gpus.write()
    shared = make_template(ada.user_id, "shared", gpu={"allow_shared": True})
    assert take(make("alone", 1, template=shared)) == [uuid(0)]
    options = {"template": shared, "gpu_mode": "shared"}
    assert take(make("one", 1, **options)) == [uuid(1)]
    assert take(make("two", 1, **options)) == [uuid(2)]
    assert take(make("three", 2, **options)) == [uuid(1), uuid(2)]
    assert take(make("four", 1, **options)) == [uuid(1)]
    modes = {gpu: [(one.workspace, one.mode) for one in several] for gpu, several in leases.holders().items()}
    assert modes[uuid(0)] == [("alone", "exclusive")]
    assert sorted(modes[uuid(1)]) == [("four", "shared"), ("one", "shared"), ("three", "shared")]
    with pytest.raises(errors.GpuUnavailable, match="asks for 3 GPUs in shared mode and 2 are free"):
        take(make("five", 3, **options))
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("six", 1, template=shared))
    assert caught.value.hint == """svc ws edit six --file - <<< '{"resources": {"gpu_mode": "shared"}}'"""


def test_the_database_itself_refuses_two_exclusive_holders(gpus: Gpus, make: Any) -> None:
    take(make("one", 4))
    make("two")
    row = "INSERT INTO gpu_leases VALUES (?, 'ws-00000two', ?, '2026-01-01T00:00:00.000Z')"
    for mode in ("exclusive", "shared"):
        with pytest.raises(IntegrityError, match="the GPU is leased"), write():
            database.execute_sql(row, (uuid(0), mode))


def test_a_confirmed_stop_ends_them(gpus: Gpus, make: Any, ada: Caller) -> None:
    lab = make("lab", 2, status="running")
    take(lab)
    for status in ("stopping", "failed"):
        states.move(workspace(lab), status)
        assert len(leases.of(lab)) == 2, "nobody has seen that it does not run"
    states.move(workspace(lab), "stopped")
    assert leases.of(lab) == []


def test_they_go_with_the_workspace(gpus: Gpus, make: Any) -> None:
    take(make("lab", 2))
    with write():
        database.execute_sql("DELETE FROM workspaces")
    assert not leases.any_held()


def test_details_are_json(gpus: Gpus, make: Any) -> None:
    take(make("one", 4))
    with pytest.raises(errors.GpuUnavailable) as caught:
        take(make("two"))
    assert json.loads(json.dumps(caught.value.body("r")))["error"]["retryable"] is True
