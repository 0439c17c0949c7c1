"""The doctor's words on GPUs: none, some, and some that no workspace can have."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from svc.admin.checks import gpus
from svc.admin.findings import Finding, Host
from svc.domain.gpus import cdi, hardware
from svc.host.owner import Owner
from svc.settings import Settings

GPUS: list[dict[str, Any]] = [
    {"uuid": f"GPU-{number}", "model": "NVIDIA H100", "vram_bytes": 2**36, "compute_capability": "9.0",
     "mig": False, "minor": number} for number in range(2)
]  # fmt: skip


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setattr(cdi, "DIRECTORIES", (str(tmp_path),))
    return Host(Settings(file={}), "", Owner(0, 0), str(tmp_path))


def check(host: Host, provider: str) -> list[Finding]:
    host.settings = Settings(file={"SVC_GPU_PROVIDER": provider})
    found = list(gpus.gpus(host))
    assert all(bool(finding.remedy) == (finding.level != "ok") for finding in found)
    return found


def described(tmp_path: Path, gpus: list[dict[str, Any]]) -> str:
    path = tmp_path / "gpus"
    path.write_text(json.dumps({"driver": "550.54.15", "max_cuda": "12.4", "gpus": gpus}))
    return str(path)


def specified(tmp_path: Path, *names: str) -> None:
    devices = [{"name": name, "containerEdits": {"deviceNodes": [{"path": "/dev/null"}]}} for name in names]
    (tmp_path / "nvidia.json").write_text(json.dumps({"kind": cdi.KIND, "devices": devices}))


def test_none_is_fine(host: Host) -> None:
    assert [finding.level for finding in check(host, "none")] == ["ok"]


def test_a_host_without_a_driver_is_fine_and_one_with_is_not(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def blind(_provider: str) -> hardware.Hardware:
        raise hardware.NotSeenError("NVML does not start: Driver/library version mismatch")

    monkeypatch.setattr(hardware, "inspect", blind)
    assert [finding.level for finding in check(host, "nvml")] == ["ok"]
    module = tmp_path / gpus.MODULE.lstrip("/")
    module.parent.mkdir(parents=True)
    module.touch()
    (found,) = check(host, "nvml")
    assert (found.level, found.remedy) == ("fail", "nvidia-smi")
    assert "Driver/library version mismatch" in found.found


def test_a_driver_that_hangs_does_not_hang_the_doctor(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor is it told to run a program that would hang as well."""
    monkeypatch.setattr(hardware, "ANSWER_S", 0.05)
    monkeypatch.setattr(hardware, "inspect", lambda _provider: threading.Event().wait(30))
    module = tmp_path / gpus.MODULE.lstrip("/")
    module.parent.mkdir(parents=True)
    module.touch()
    (found,) = check(host, "nvml")
    assert (found.level, found.remedy) == ("fail", "sudo dmesg --level err,warn")
    assert found.found == "the NVIDIA driver is loaded, but the GPU driver does not answer"


def test_gpus_with_their_names(host: Host, tmp_path: Path) -> None:
    specified(tmp_path, "GPU-0", "GPU-1")
    gpus, names = check(host, described(tmp_path, GPUS))
    assert gpus.found == "2: NVIDIA H100; driver 550.54.15, CUDA up to 12.4"
    assert (names.code, names.level) == ("cdi", "ok")


def test_gpus_without(host: Host, tmp_path: Path) -> None:
    _, names = check(host, described(tmp_path, GPUS))
    assert (names.level, names.remedy) == ("fail", cdi.REMEDY)
    specified(tmp_path, "GPU-0")
    _, names = check(host, described(tmp_path, GPUS))
    assert names.level == "warn"
    assert names.found == "the CDI specification has no device for GPU-1; 1 of 2 are usable"


def test_a_file_that_describes_none(host: Host, tmp_path: Path) -> None:
    assert [finding.level for finding in check(host, described(tmp_path, []))] == ["fail"]
    (found,) = check(host, str(tmp_path / "missing"))
    assert "does not describe GPUs" in found.found
