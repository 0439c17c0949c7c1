"""NVML through the real pynvml, on a library of fake GPUs built here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from unit.configuring import configured

from svc.domain.gpus import hardware
from svc.domain.gpus.gpus import Gpu, GpuProcess, Hardware

TESTS = Path(__file__).parents[3]
COMMANDS = pytest.mark.allow_commands("gcc", "python", "python3")
SEEN = """
import json, sys
from svc.domain import configuration
from svc.domain.gpus import hardware
configuration.current = configuration.Configuration(gpu_provider="nvml")
assert "pynvml" not in sys.modules, "loaded before it is needed"
print(json.dumps([hardware.inventory(), hardware.processes(), hardware.utilization(),
    hardware.used_bytes()]))
"""
WHOLE = "GPU-fa4e0000-0000-4000-8000-000000000{:03}"
PIECE = "MIG-fa4e0000-0000-4000-8000-000{:03}000{:03}"
H100 = "NVIDIA H100 80GB HBM3|85520809984|1073741824|9|0|37|12|{mig}|{processes}\n"
RTX = "NVIDIA GeForce RTX 4090|25757220864|0|8|9|0|0|-|\n"
EIGHTH = 10737418240


class Sight(NamedTuple):
    """What a process sees, and what it logs."""

    hardware: Hardware
    processes: list[GpuProcess]
    utilization: dict[str, int]
    used_bytes: dict[str, int]
    said: str


See = Callable[[str | None], Sight]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a libnvidia-ml.so.1, made when it is first wanted."""
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def see(library: Path, tmp_path: Path) -> See:
    """What there is on a host with these lines of GPUs; None: no driver."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler on this host (apt-get install gcc)")

    def seen(lines: str | None) -> Sight:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(TESTS.parent),
            "LD_LIBRARY_PATH": str(library),
        }
        if lines is not None:
            (tmp_path / "gpus").write_text(lines, encoding="latin-1")
            environ["FAKE_NVML"] = str(tmp_path / "gpus")
        target = library / "libnvidia-ml.so.1"
        if not target.exists():
            build = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
            subprocess.run([*build, "-o", target, TESTS / "fake_nvml.c"], check=True)
        ran = subprocess.run(
            [sys.executable, "-c", SEEN], env=environ, capture_output=True, text=True, check=True
        )
        (*driver, gpus, unread), processes, utilization, used = json.loads(ran.stdout)
        there = Hardware(*driver, [Gpu(*gpu) for gpu in gpus], unread)
        return Sight(there, [GpuProcess(*one) for one in processes], utilization, used, ran.stderr)

    return seen


@COMMANDS
def test_what_the_driver_says(see: See) -> None:
    seen = see(H100.format(mig=0, processes="1234:536870912") + RTX)
    h100 = Gpu(WHOLE.format(0), "NVIDIA H100 80GB HBM3", 85520809984, "9.0", False, minor=0)
    rtx = Gpu(WHOLE.format(1), "NVIDIA GeForce RTX 4090", 25757220864, "8.9", False, minor=1)
    assert seen.hardware == Hardware("nvml", "550.54.15", "12.4", [h100, rtx])
    assert seen.processes == [GpuProcess(WHOLE.format(0), 1234, 536870912)]
    assert seen.utilization == {WHOLE.format(0): 37, WHOLE.format(1): 0}
    assert seen.used_bytes == {WHOLE.format(0): 1073741824, WHOLE.format(1): 0}
    assert seen.said == ""


@COMMANDS
def test_a_process_that_computes_and_draws_is_one(see: See) -> None:
    seen = see(H100.format(mig=0, processes="7:100,7:300!,8:50!,9:?"))
    gpu = WHOLE.format(0)
    assert seen.processes == [GpuProcess(gpu, 7, 300), GpuProcess(gpu, 9, None), GpuProcess(gpu, 8, 50)]


@COMMANDS
def test_the_instances_of_a_gpu_that_is_cut(see: See) -> None:
    """They are what is leased, each with its uuid and memory; what runs is told of them, not of the whole."""
    seen = see(H100.format(mig=f"1:{EIGHTH},0,{2 * EIGHTH}", processes="5:100@0,6:200@2") + RTX)
    whole, first, third, rtx = seen.hardware.gpus
    assert whole == Gpu(WHOLE.format(0), "NVIDIA H100 80GB HBM3", 85520809984, "9.0", True, minor=0)
    assert first == Gpu(PIECE.format(0, 0), "NVIDIA H100 80GB HBM3 MIG", EIGHTH, "9.0", True, 0, 0)
    assert third == Gpu(PIECE.format(0, 2), "NVIDIA H100 80GB HBM3 MIG", 2 * EIGHTH, "9.0", True, 0, 2)
    assert [gpu.leasable for gpu in seen.hardware.gpus] == [False, True, True, True]
    assert seen.processes == [GpuProcess(first.uuid, 5, 100), GpuProcess(third.uuid, 6, 200)]
    assert seen.utilization == {whole.uuid: 37, rtx.uuid: 0}
    assert set(seen.used_bytes) == {gpu.uuid for gpu in seen.hardware.gpus}


@COMMANDS
def test_a_lost_gpu_is_none_and_the_others_stay(see: See) -> None:
    seen = see("LOST|1|0|9|0|0|0|0|4:5\n" + H100.format(mig=1, processes=""))
    assert [(gpu.model, gpu.minor) for gpu in seen.hardware.gpus] == [("NVIDIA H100 80GB HBM3", 1)]
    assert seen.processes == []


@COMMANDS
def test_a_model_that_is_no_text_hides_no_gpu(see: See) -> None:
    """Drivers in virtual machines have given such names."""
    seen = see(RTX.replace("NVIDIA", "\xf8\x01") + RTX)
    assert [gpu.model for gpu in seen.hardware.gpus] == ["NVIDIA GPU", "NVIDIA GeForce RTX 4090"]
    assert seen.said == ""


@COMMANDS
def test_a_driver_that_is_not_loaded(see: See) -> None:
    seen = see(None)
    assert seen[:4] == (
        Hardware("nvml", None, None, [], "NVML cannot be initialised: Driver Not Loaded"),
        [],
        {},
        {},
    )
    assert "no GPUs: NVML cannot be initialised: Driver Not Loaded" in seen.said


@COMMANDS
def test_a_host_without_the_library(see: See, library: Path, tmp_path: Path) -> None:
    see("")  # so that it is built
    target = library / "libnvidia-ml.so.1"
    kept = target.read_bytes()
    target.write_text("")  # found, and no library: also on a host that has one
    try:
        seen = see("")
    finally:
        target.write_bytes(kept)
    assert seen.hardware == Hardware("nvml", None, None, [])
    assert {json.loads(line)["level"] for line in seen.said.splitlines()} == {"info"}


def test_a_python_without_the_module(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    configured(gpu_provider="nvml")
    found = hardware.inventory()
    assert (found.gpus, found.unread) == ([], "the module pynvml (nvidia-ml-py) is not installed")
    assert hardware.processes() == []
    assert "nvidia-ml-py" in capfd.readouterr().err
