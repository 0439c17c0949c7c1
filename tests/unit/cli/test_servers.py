"""`svc servers hardware`: on hosts with GPUs and without, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

GET = "GET /api/servers/hardware"
GPU = {
    "index": 0, "uuid": "GPU-1", "model": "NVIDIA H100", "vram_bytes": 2**36, "compute_capability": "9.0",
    "mig": False, "cdi": "nvidia.com/gpu=0",
}  # fmt: skip
READY = {"ready": True, "problem": None, "remedy": None}
NOTHING: dict[str, Any] = {"provider": "nvml", "driver": None, "max_cuda": None, "gpus": [], "cdi": READY}
FOUND = NOTHING | {"driver": "550.54.15", "max_cuda": "12.4", "gpus": [GPU]}


def test_for_people(service: Service, svc: Svc) -> None:
    service.answer(GET, FOUND)
    done = svc("servers", "hardware", terminal=True)
    driver, cuda, heading, row = done.out.splitlines()
    assert (driver.split(), cuda.split()) == (["Driver:", "550.54.15"], ["Max", "CUDA:", "12.4"])
    assert heading.split() == ["INDEX", "GPU", "MODEL", "VRAM", "COMPUTE", "CAPABILITY", "MIG", "CDI", "NAME"]
    assert row.split() == ["0", "GPU-1", "NVIDIA", "H100", "64.0", "GiB", "9.0", "no", "nvidia.com/gpu=0"]
    assert done.err == ""


def test_a_narrow_terminal_gets_the_model_and_no_uuid(service: Service, svc: Svc) -> None:
    uuid, model = "GPU-2cc0dbe6-5a01-4f7c-8f4b-1d1f3f3c9a10", "NVIDIA H100 80GB HBM3"
    service.answer(
        GET, FOUND | {"gpus": [GPU | {"uuid": uuid, "model": model, "cdi": f"nvidia.com/gpu={uuid}"}]}
    )
    *_, heading, row = svc("servers", "hardware", terminal=True).out.splitlines()
    assert heading.split() == ["INDEX", "MODEL", "VRAM", "COMPUTE", "CAPABILITY", "MIG"]
    assert row.split() == ["0", *model.split(), "64.0", "GiB", "9.0", "no"]


def test_for_programs(service: Service, svc: Svc) -> None:
    service.answer(GET, FOUND)
    assert svc("servers", "hardware").out == (
        "driver\t550.54.15\nmax_cuda\t12.4\n"
        "0\tGPU-1\tNVIDIA H100\t68719476736\t9.0\tfalse\tnvidia.com/gpu=0\n"
    )
    assert svc("servers", "hardware", "--json").out == json.dumps(FOUND) + "\n"


def test_a_host_without_gpus(service: Service, svc: Svc) -> None:
    service.answer(GET, NOTHING)
    assert svc("servers", "hardware", terminal=True) == (0, "This host has no GPUs.\n", "")
    assert svc("servers", "hardware") == (0, "driver\t\nmax_cuda\t\n", "")


def test_gpus_that_no_container_would_get(service: Service, svc: Svc) -> None:
    state = {"ready": False, "problem": "no CDI specification", "remedy": "sudo nvidia-ctk cdi generate"}
    service.answer(GET, FOUND | {"gpus": [GPU | {"cdi": None}], "cdi": state})
    done = svc("servers", "hardware")
    assert done.code == 0
    assert "svc: no GPU is usable: no CDI specification" in done.err
    assert "sudo nvidia-ctk cdi generate" in done.err


def test_one_gpu_of_two_that_a_container_would_get(service: Service, svc: Svc) -> None:
    state = {"ready": False, "problem": "no CDI name for GPU-2", "remedy": "sudo nvidia-ctk cdi generate"}
    service.answer(GET, FOUND | {"gpus": [GPU, GPU | {"uuid": "GPU-2", "cdi": None}], "cdi": state})
    assert "svc: not every GPU is usable: no CDI name for GPU-2" in svc("servers", "hardware").err


def test_gpus_that_cannot_be_read(service: Service, svc: Svc) -> None:
    state = {"ready": False, "problem": "the GPU driver does not answer", "remedy": "sudo svc admin doctor"}
    service.answer(GET, NOTHING | {"cdi": state})
    done = svc("servers", "hardware", terminal=True)
    assert (done.code, done.out) == (0, "This host has no usable GPUs.\n")
    assert "svc: no GPU is usable: the GPU driver does not answer" in done.err
    assert "for an administrator: sudo svc admin doctor" in done.err


@pytest.mark.parametrize("gpus", [None, "x", 5, {}])
def test_an_answer_that_makes_no_sense(service: Service, svc: Svc, gpus: Any) -> None:
    service.answer(GET, {"gpus": gpus, "cdi": 5})
    assert svc("servers", "hardware").code == 0


@pytest.mark.parametrize("line", ["", "gpus", "hardware x", "hardware --host far"])
def test_wrong_usage(service: Service, svc: Svc, line: str) -> None:
    assert svc("servers", *line.split()).code == 2
    assert service.sent == []
