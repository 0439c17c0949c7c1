"""GPUs from a file, and none; NVML has its own tests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.domain.gpus import hardware
from svc.domain.gpus.gpus import Gpu, GpuProcess, Hardware, NotSeenError

FAKE: dict[str, Any] = {
    "driver": "550.54.15",
    "max_cuda": "12.4",
    "gpus": [
        {
            "uuid": "GPU-1", "model": "NVIDIA H100", "vram_bytes": 2**36, "compute_capability": "9.0",
            "mig": False,
        }
    ],
}  # fmt: skip
GPU = Gpu(**FAKE["gpus"][0])


@pytest.fixture
def fakes(tmp_path: Path) -> Callable[..., Hardware]:
    """Describe the GPUs in a file and look; values replace those of FAKE."""

    def seen(**changes: Any) -> Hardware:
        file = tmp_path / "gpus.json"
        file.write_text(json.dumps(FAKE | changes))
        configured(gpu_provider=str(file))
        return hardware.inventory()

    return seen


def test_none_is_looked_at_before_somebody_says_how() -> None:
    configured(gpu_provider=hardware.NONE)
    assert hardware.inventory() == Hardware("none", None, None, [])


def test_fake_gpus(fakes: Callable[..., Hardware], tmp_path: Path) -> None:
    assert fakes() == Hardware(str(tmp_path / "gpus.json"), "550.54.15", "12.4", [GPU])
    assert fakes(driver=None, max_cuda=None, gpus=[])[1:] == (None, None, [], None)
    bare = FAKE["gpus"][0] | {"vram_bytes": None, "compute_capability": None}
    assert fakes(gpus=[bare]).gpus == [GPU._replace(vram_bytes=None, compute_capability=None)]


@pytest.mark.parametrize(
    "changes",
    [
        {"driver": 550},
        {"max_cuda": 12.4},
        {"max_cuda": "twelve"},
        {"gpus": None},
        {"gpus": [[]]},
        {"gpus": [FAKE["gpus"][0]] * 2},
        *({"gpus": [FAKE["gpus"][0] | one]} for one in (
            {"uuid": "0"}, {"uuid": 1}, {"model": "\x1b[2J"}, {"model": None}, {"vram_bytes": "80G"},
            {"vram_bytes": True}, {"minor": "0"}, {"minor": -1}, {"instance": 0.5}, {"utilization": 101},
            {"utilization": None}, {"processes": None}, {"processes": [7]}, {"processes": [{"pid": 7}]},
            {"processes": [{"pid": 0, "used_bytes": 1}]}, {"processes": [{"pid": 7, "used_bytes": -1}]},
            {"vram_bytes": -1}, {"compute_capability": 9.0}, {"mig": 0}, {"busy": 1},
        )),
    ],
)  # fmt: skip
def test_a_file_that_describes_none(changes: Any, fakes: Callable[..., Hardware], capfd: Any) -> None:
    assert fakes(**changes).gpus == []
    assert "does not describe GPUs" in capfd.readouterr().err


@pytest.mark.parametrize("content", ["", "[]", "{}", "\xff", '{"gpus": []}', "[" * 60_000])
def test_a_file_of_something_else(content: str, tmp_path: Path) -> None:
    (tmp_path / "gpus.json").write_bytes(content.encode("latin-1"))
    for path in (tmp_path / "gpus.json", tmp_path / "missing", tmp_path):
        configured(gpu_provider=str(path))
        assert hardware.inventory().gpus == []


def test_a_look_is_good_for_some_seconds(
    fakes: Callable[..., Hardware], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("svc.domain.gpus.hardware.time.monotonic", lambda: clock[0])
    assert fakes().gpus == [GPU]
    (tmp_path / "gpus.json").unlink()
    assert hardware.inventory().gpus == [GPU]
    clock[0] += hardware.INVENTORY_S
    assert hardware.inventory().gpus == []
    (tmp_path / "gpus.json").write_text(json.dumps(FAKE))
    clock[0] += hardware.INVENTORY_S
    assert hardware.inventory().gpus == [GPU]


def test_what_fails_again_is_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any) -> None:
    monkeypatch.setattr(hardware._inventory, "valid_s", 0.0)
    configured(gpu_provider=str(tmp_path / "missing"))
    for _ in range(3):
        hardware.inventory()
    assert capfd.readouterr().err.count("no GPUs") == 1


def test_what_uses_the_fakes(fakes: Callable[..., Hardware]) -> None:
    used = {
        "minor": 3,
        "utilization": 12,
        "used_bytes": 99,
        "processes": [{"pid": 7, "used_bytes": 5}, {"pid": 8, "used_bytes": None}],
    }
    seen = fakes(gpus=[FAKE["gpus"][0] | used])
    assert seen.gpus == [GPU._replace(minor=3)]
    assert hardware.processes() == [GpuProcess("GPU-1", 7, 5), GpuProcess("GPU-1", 8, None)]
    assert hardware.utilization() == {"GPU-1": 12}
    assert hardware.used_bytes() == {"GPU-1": 99}
    configured(gpu_provider=hardware.NONE)
    assert (hardware.processes(), hardware.utilization(), hardware.used_bytes()) == ([], {}, {})


@pytest.mark.parametrize("used", [-1, True, "1", None])
def test_used_memory_of_a_fake_is_a_number(fakes: Callable[..., Hardware], used: object) -> None:
    assert fakes(gpus=[FAKE["gpus"][0] | {"used_bytes": used}]).gpus == []


def test_only_the_instances_of_a_gpu_that_is_cut_are_leased() -> None:
    assert GPU.leasable
    assert not GPU._replace(mig=True).leasable
    assert GPU._replace(mig=True, uuid="MIG-1", instance=0).leasable


@pytest.mark.parametrize(
    ("needs", "fit"),
    [
        ({}, True), ({"min_vram_bytes": 2**36}, True), ({"min_vram_bytes": 2**36 + 1}, False),
        ({"min_compute_capability": "9.0"}, True), ({"min_compute_capability": "10.0"}, False),
    ],
)  # fmt: skip
def test_what_a_template_needs(needs: dict[str, Any], fit: bool) -> None:
    assert hardware.fits(GPU, needs) is fit
    assert hardware.fits(GPU._replace(vram_bytes=None, compute_capability=None), needs)


def test_versions_are_compared_as_numbers() -> None:
    assert hardware.version("12.10") > hardware.version("12.4") > hardware.version("9.0")


def test_a_driver_that_hangs_holds_nobody(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    """Without an answer there are no GPUs, as with a driver that fails; once it answers, there are."""
    monkeypatch.setattr(hardware, "ANSWER_S", 0.2)
    configured(gpu_provider=hardware.NVML)
    answers, reads = threading.Event(), []

    def read(provider: str) -> list[Gpu]:
        reads.append(provider)
        answers.wait(60)
        return [GPU]

    cache = hardware._Cache(read, lambda *_: [], 0.0)
    with ThreadPoolExecutor(8) as pool:
        found = [pool.submit(cache.get) for _ in range(16)]
        try:
            assert [one.result(timeout=30) for one in found] == [[]] * 16
        finally:
            answers.set()
    assert len(reads) == 1, "no second thread waits beside the first"
    assert capfd.readouterr().err.count("the GPU driver does not answer") == 1
    assert cache.reading is not None and cache.reading.done.wait(30)
    assert cache.get() == [GPU]
    assert len(reads) == 1, "the late answer counts"


def test_a_slow_driver_loses_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it said last counts for a while, and what it says late from then on."""
    monkeypatch.setattr(hardware, "ANSWER_S", 0.01)
    configured(gpu_provider=hardware.NVML)
    clock, answers, found = [1000.0], threading.Event(), [GPU]
    monkeypatch.setattr("svc.domain.gpus.hardware.time.monotonic", lambda: clock[0])

    def read(_provider: str) -> list[Gpu]:
        answers.wait(60)
        return list(found)

    cache = hardware._Cache(read, lambda *_: [], 0.0)
    try:
        answers.set()
        while not cache.get():
            pass  # a thread may take longer than 10 ms to begin
        answers.clear()
        found.append(GPU._replace(uuid="GPU-2"))
        clock[0] += hardware.KNOWN_S - 1
        assert cache.get() == [GPU]
        clock[0] += 1
        assert cache.get() == []
        answers.set()
        assert cache.reading is not None and cache.reading.done.wait(30)
        assert cache.get() == found
    finally:
        answers.set()


def test_what_a_driver_raises_is_raised(capfd: Any) -> None:
    configured(gpu_provider=hardware.NVML)

    def fail(_provider: str) -> list[Gpu]:
        raise NotSeenError("no library", "info")

    assert hardware._Cache(fail, lambda *_: [], 0.0).get() == []
    assert "no GPUs: no library" in capfd.readouterr().err
