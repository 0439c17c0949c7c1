"""This host's GPUs, their driver, and their CDI names."""

from __future__ import annotations

from pathlib import Path

import pytest
from unit.gpu_host import VRAM, GpuHost, uuid

from svc.domain.gpus import servers


@pytest.fixture
def gpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GpuHost:
    return GpuHost(tmp_path, monkeypatch)


def test_a_host_without_gpus() -> None:
    assert servers.record() == {
        "provider": "none", "driver": None, "max_cuda": None, "gpus": [],
        "cdi": {"ready": True, "problem": None, "remedy": None},
    }  # fmt: skip


def test_gpus_and_their_names(gpus: GpuHost) -> None:
    gpus.have(2, named=1)
    found = servers.record()
    assert (found["provider"], found["driver"], found["max_cuda"]) == ("file", "550.54.15", "12.4")
    assert found["gpus"][0] == {
        "index": 0, "uuid": uuid(0), "model": "NVIDIA H100", "vram_bytes": VRAM, "compute_capability": "9.0",
        "mig": False, "cdi": f"nvidia.com/gpu={uuid(0)}",
    }  # fmt: skip
    assert found["gpus"][1]["cdi"] is None
    assert found["cdi"]["ready"] is False
    assert uuid(1) in found["cdi"]["problem"]
    assert "nvidia-ctk cdi generate" in found["cdi"]["remedy"]
