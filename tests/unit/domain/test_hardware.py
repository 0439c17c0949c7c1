"""GPUs: through the real pynvml on a library of fake ones, from a file, and none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from svc.domain import hardware
from svc.domain.hardware import Gpu, Hardware

TESTS = Path(__file__).parents[2]
COMMANDS = pytest.mark.allow_commands("gcc", "python", "python3")
SEEN = """
import json, sys
from svc.domain import hardware
hardware.use("nvml")
assert "pynvml" not in sys.modules, "loaded before it is needed"
print(json.dumps(hardware.inventory()))
"""
H100 = "NVIDIA H100 80GB HBM3|85520809984|1073741824|9|0|37|12|{mig}|1234:536870912\n"
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


@pytest.fixture(autouse=True)
def none_afterwards() -> Any:
    yield
    hardware.use(hardware.NONE)


@pytest.fixture
def by_nvml(tmp_path: Path) -> Callable[[str | None], tuple[Any, str]]:
    """What a process sees on a host with these lines of GPUs, and what it logs; None: no driver."""
    library = tmp_path / "libnvidia-ml.so.1"

    def seen(lines: str | None) -> tuple[Any, str]:
        environ = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(TESTS.parent),
            "LD_LIBRARY_PATH": str(tmp_path),
        }
        if lines is not None:
            (tmp_path / "gpus").write_text(lines)
            environ["FAKE_NVML"] = str(tmp_path / "gpus")
        if not library.exists():
            build = ["gcc", "-shared", "-fPIC", "-Wall", "-Werror", "-Wl,-soname,libnvidia-ml.so.1"]
            subprocess.run([*build, "-o", library, TESTS / "fake_nvml.c"], check=True)
        ran = subprocess.run(
            [sys.executable, "-c", SEEN], env=environ, capture_output=True, text=True, check=True
        )
        provider, driver, max_cuda, gpus = json.loads(ran.stdout)
        return Hardware(provider, driver, max_cuda, [Gpu(*gpu) for gpu in gpus]), ran.stderr

    return seen


@pytest.fixture
def fakes(tmp_path: Path) -> Callable[..., Hardware]:
    """Describe the GPUs in a file and look; values replace those of FAKE."""

    def seen(**changes: Any) -> Hardware:
        file = tmp_path / "gpus.json"
        file.write_text(json.dumps(FAKE | changes))
        hardware.use(str(file))
        return hardware.inventory()

    return seen


# --- NVML -----------------------------------------------------------------------------------


@COMMANDS
def test_what_the_driver_says(by_nvml: Callable[[str | None], tuple[Any, str]]) -> None:
    lines = H100.format(mig=0) + H100.format(mig=1) + "NVIDIA GeForce RTX 4090|25757220864|0|8|9|0|0|-|\n"
    seen, said = by_nvml(lines)
    assert seen == Hardware(
        "nvml",
        "550.54.15",
        "12.4",
        [
            Gpu(
                "GPU-fa4e0000-0000-4000-8000-000000000000", "NVIDIA H100 80GB HBM3", 85520809984, "9.0", False
            ),
            Gpu(
                "GPU-fa4e0000-0000-4000-8000-000000000001", "NVIDIA H100 80GB HBM3", 85520809984, "9.0", True
            ),
            Gpu(
                "GPU-fa4e0000-0000-4000-8000-000000000002",
                "NVIDIA GeForce RTX 4090",
                25757220864,
                "8.9",
                False,
            ),
        ],
    )
    assert said == ""


@COMMANDS
def test_a_lost_gpu_is_none_and_the_others_stay(by_nvml: Callable[[str | None], tuple[Any, str]]) -> None:
    seen, _ = by_nvml("LOST|1|0|9|0|0|0|0|\n" + H100.format(mig=0))
    assert [gpu.model for gpu in seen.gpus] == ["NVIDIA H100 80GB HBM3"]


@COMMANDS
def test_a_driver_that_is_not_loaded(by_nvml: Callable[[str | None], tuple[Any, str]]) -> None:
    seen, said = by_nvml(None)
    assert seen == Hardware("nvml", None, None, [])
    assert "no GPUs: NVML does not start: Driver Not Loaded" in said


@COMMANDS
def test_a_host_without_the_library(by_nvml: Callable[[str | None], tuple[Any, str]], tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("")  # found, and no library: also on a host that has one
    seen, said = by_nvml("")
    assert seen == Hardware("nvml", None, None, [])
    assert json.loads(said)["level"] == "info"


def test_a_python_without_the_module(monkeypatch: pytest.MonkeyPatch, capfd: Any) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", None)
    hardware.use("nvml")
    assert hardware.inventory() == Hardware("nvml", None, None, [])
    assert "nvidia-ml-py" in capfd.readouterr().err


# --- a file, and none -------------------------------------------------------------------------


def test_none_is_looked_at_before_somebody_says_how() -> None:
    hardware.use(hardware.NONE)
    assert hardware.inventory() == Hardware("none", None, None, [])


def test_fake_gpus(fakes: Callable[..., Hardware], tmp_path: Path) -> None:
    assert fakes() == Hardware(str(tmp_path / "gpus.json"), "550.54.15", "12.4", [GPU])
    assert fakes(driver=None, max_cuda=None, gpus=[])[1:] == (None, None, [])
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
            {"vram_bytes": True}, {"vram_bytes": -1}, {"compute_capability": 9.0}, {"mig": 0}, {"busy": 1},
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
        hardware.use(str(path))
        assert hardware.inventory().gpus == []


def test_a_look_is_good_for_some_seconds(
    fakes: Callable[..., Hardware], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    clock = [1000.0]
    monkeypatch.setattr("svc.domain.hardware.time.monotonic", lambda: clock[0])
    assert fakes().gpus == [GPU]
    (tmp_path / "gpus.json").unlink()
    assert hardware.inventory().gpus == [GPU]
    clock[0] += hardware.LOOK_S
    assert hardware.inventory().gpus == []
    (tmp_path / "gpus.json").write_text(json.dumps(FAKE))
    clock[0] += hardware.LOOK_S
    assert hardware.inventory().gpus == [GPU]


def test_what_fails_again_is_said_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: Any) -> None:
    monkeypatch.setattr(hardware, "LOOK_S", 0.0)
    hardware.use(str(tmp_path / "missing"))
    for _ in range(3):
        hardware.inventory()
    assert capfd.readouterr().err.count("no GPUs") == 1


def test_versions_are_compared_as_numbers() -> None:
    assert hardware.version("12.10") > hardware.version("12.4") > hardware.version("9.0")
