"""This host's GPUs and their driver, "the maximum GPU compute runtime", and how containers would get them."""

from __future__ import annotations

from typing import Any

from svc.domain.gpus import cdi, hardware


def record() -> dict[str, Any]:
    """What there is, whoever holds it.

    {provider: nvml|file|none, driver, max_cuda, gpus[{index, uuid, model, vram_bytes,
    compute_capability, mig, cdi}], cdi{ready, problem, remedy}}; `cdi` of a GPU is the
    name by which a container is given it, null where no installed specification has one.
    """
    seen = hardware.inventory()
    state = cdi.state(seen)
    provider = seen.provider if seen.provider in (hardware.NONE, hardware.NVML) else "file"
    return {
        "provider": provider,
        "driver": seen.driver,
        "max_cuda": seen.max_cuda,
        "gpus": [
            {
                "index": index,
                "uuid": gpu.uuid,
                "model": gpu.model,
                "vram_bytes": gpu.vram_bytes,
                "compute_capability": gpu.compute_capability,
                "mig": gpu.mig,
                "cdi": state.names.get(gpu.uuid),
            }
            for index, gpu in enumerate(seen.gpus)
        ],
        "cdi": {"ready": state.ready, "problem": state.problem, "remedy": state.remedy},
    }
