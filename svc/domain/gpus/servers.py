"""The record of this host's GPUs, their driver, "the maximum GPU compute runtime" and their CDI names."""

from __future__ import annotations

from typing import Any

from svc.domain.gpus import cdi, hardware
from svc.domain.gpus.gpus import NONE, NVML

KEYS = ("uuid", "model", "vram_bytes", "compute_capability", "mig")


def record() -> dict[str, Any]:
    """All GPUs, leased or not.

    {provider: nvml|file|none, driver, max_cuda, gpus[{index, uuid, model, vram_bytes,
    compute_capability, mig, cdi}], cdi{ready, problem, remedy}}; `cdi` of a GPU is its
    CDI name, null when no installed specification has it.
    """
    seen = hardware.inventory()
    state = cdi.state(seen)
    provider = seen.provider if seen.provider in (NONE, NVML) else "file"
    return {
        "provider": provider,
        "driver": seen.driver,
        "max_cuda": seen.max_cuda,
        "gpus": [
            {"index": index} | {key: getattr(gpu, key) for key in KEYS} | {"cdi": state.names.get(gpu.uuid)}
            for index, gpu in enumerate(seen.gpus)
        ],
        "cdi": {"ready": state.ready, "problem": state.problem, "remedy": state.remedy},
    }
