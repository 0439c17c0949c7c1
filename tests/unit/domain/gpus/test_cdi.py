"""Names of GPUs in CDI specifications, and what does not fit the driver."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from unit.domain.gpu_rows import DRIVER, Gpus, device, uuid

from svc.domain.gpus import cdi, hardware
from svc.domain.gpus.gpus import Gpu, Hardware


def state(gpus: Gpus) -> cdi.State:
    gpus.write()
    return cdi.state(hardware.inventory())


def numbered(number: int, name: str | None = None, **edits: Any) -> dict[str, Any]:
    """As nvidia-ctk writes it: named by its index, with the node of its own."""
    nodes = [{"path": f"/dev/nvidia{number}"}, {"path": "/dev/null"}]
    return {"name": name or str(number), "containerEdits": {"deviceNodes": nodes} | edits}


@pytest.fixture
def nodes(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The device nodes that are there."""
    there = {"/dev/null", *(f"/dev/nvidia{number}" for number in range(4))}
    monkeypatch.setattr(cdi, "_is_device", lambda path: path in there)
    return there


def test_a_device_of_the_uuid(gpus: Gpus) -> None:
    names = {uuid(number): f"nvidia.com/gpu=GPU-{number}" for number in range(4)}
    assert state(gpus) == cdi.State(True, None, None, names)


def test_a_device_of_the_number_is_the_one_with_the_node(gpus: Gpus, nodes: set[str]) -> None:
    """The driver counts otherwise than the nodes: what the device brings decides, not what it is called."""
    gpus.devices = [numbered(3, "0"), numbered(2, "1"), numbered(1, "2"), numbered(0, "3")]
    gpus.devices.append({"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia0"}]}})
    assert state(gpus).names == {uuid(number): f"nvidia.com/gpu={3 - number}" for number in range(4)}


def test_yaml_is_read_as_json_is(gpus: Gpus, nodes: set[str]) -> None:
    gpus.devices = [numbered(number) for number in range(4)]
    before = state(gpus)
    document = yaml.safe_dump(json.loads(gpus.specification.read_text()))
    gpus.specification.unlink()
    (gpus.specification.parent / "nvidia.yaml").write_text(document)
    assert cdi.state(hardware.inventory()) == before
    assert before.ready


def test_an_instance_has_its_gpus_node_and_its_place(gpus: Gpus, nodes: set[str]) -> None:
    whole = Gpu("GPU-0", "H100", 2**36, "9.0", True, minor=1)
    instances = [Gpu(f"MIG-{place}", "H100 MIG", 2**33, "9.0", True, 1, place) for place in (0, 2)]
    gpus.devices = [numbered(1, "0"), numbered(1, "0:0"), numbered(1, "0:2"), numbered(0, "1:2")]
    gpus.write()
    seen = cdi.state(Hardware("nvml", DRIVER, "12.4", [whole, *instances]))
    assert seen.ready
    assert seen.names == {"MIG-0": "nvidia.com/gpu=0:0", "MIG-2": "nvidia.com/gpu=0:2"}


def test_a_host_without_gpus_needs_no_specification(gpus: Gpus) -> None:
    gpus.specification.unlink()
    assert cdi.state(Hardware("none", None, None, [])) == cdi.State(True, None, None, {})


def test_no_specification(gpus: Gpus) -> None:
    gpus.specification.unlink()
    seen = cdi.state(hardware.inventory())
    assert (seen.ready, seen.names, seen.remedy) == (False, {}, cdi.REMEDY)
    assert seen.problem is not None and seen.problem.startswith("no CDI specification of nvidia.com/gpu")


def test_a_gpu_that_the_specification_lacks(gpus: Gpus) -> None:
    gpus.devices = gpus.devices[:2]
    seen = state(gpus)
    assert seen.problem == "the CDI specification has no device for GPU-2 (and 1 more)"
    assert sorted(seen.names) == [uuid(0), uuid(1)]
    assert seen.remedy == "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"


def test_a_node_that_is_missing(gpus: Gpus, nodes: set[str]) -> None:
    gpus.devices = [numbered(number) for number in range(4)]
    nodes.remove("/dev/nvidia1")
    seen = state(gpus)
    assert seen.problem == "/dev/nvidia1 of the CDI device nvidia.com/gpu=1 is missing"
    assert sorted(seen.names) == [uuid(0), uuid(2), uuid(3)]
    gpus.edits = {"deviceNodes": [{"path": "/dev/nvidiactl"}]}  # which every one of them needs
    assert state(gpus).names == {}


def test_a_specification_for_another_driver(gpus: Gpus) -> None:
    library = "/usr/lib/x86_64-linux-gnu/libcuda.so."
    gpus.edits = {"mounts": [{"hostPath": library + "535.161.08", "containerPath": "/x"}]}
    seen = state(gpus)
    assert seen.names == {}
    assert seen.problem == f"the CDI specification is for driver 535.161.08, but {DRIVER} is running"
    gpus.edits = {"mounts": [{"hostPath": library + DRIVER, "containerPath": "/x"}, {"hostPath": "/a.so.1"}]}
    assert state(gpus).ready


def test_a_specification_of_somebody_else_says_nothing(gpus: Gpus) -> None:
    (gpus.specification.parent / "amd.yaml").write_text("kind: amd.com/gpu\ndevices: []\n")
    (gpus.specification.parent / "notes.txt").write_text("[")
    assert state(gpus).ready


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00", "kind: nvidia.com/gpu", "kind: [" * 3000,
                                  "kind: nvidia.com/gpu\ndevices: [7]"])  # fmt: skip
def test_a_file_that_is_none(text: str, gpus: Gpus) -> None:
    gpus.specification.unlink()
    (gpus.specification.parent / "nvidia.yaml").write_text(text)
    seen = cdi.state(hardware.inventory())
    assert not seen.ready
    assert seen.problem is not None and "not a valid CDI specification" in seen.problem


def test_a_changed_file_is_read_anew(gpus: Gpus) -> None:
    assert state(gpus).ready
    gpus.devices = [device(0)]
    assert sorted(state(gpus).names) == [uuid(0)]


def test_what_a_later_directory_says_counts(gpus: Gpus, monkeypatch: pytest.MonkeyPatch) -> None:
    later = gpus.specification.parent.parent / "none"
    later.mkdir()
    (later / "nvidia.json").write_text(json.dumps({"kind": cdi.KIND, "devices": [
        {"name": uuid(0), "containerEdits": {"deviceNodes": [{"path": "/dev/no-such"}]}},
    ]}))  # fmt: skip
    assert sorted(state(gpus).names) == [uuid(1), uuid(2), uuid(3)]
