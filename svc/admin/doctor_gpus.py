"""The doctor's checks of GPUs: whether the driver answers, and whether CDI hands them out."""

from __future__ import annotations

import os
from collections.abc import Iterator

from svc.admin.findings import Finding, Host, fail, ok, warn

MODULE = "/proc/driver/nvidia/version"  # there while the kernel has the driver


def gpus(host: Host) -> Iterator[Finding]:
    """The GPUs as SVC_GPU_PROVIDER sees them, and their CDI names."""
    from svc.domain.gpus import cdi, hardware

    provider = host.settings.gpu_provider
    if provider == hardware.NONE:
        yield ok("gpus", "SVC_GPU_PROVIDER is none: workspaces get no GPUs")
        return
    try:
        seen = hardware.inspect(provider)
    except hardware.NotSeenError as error:
        yield from _without(host, provider, str(error))
        return
    if not seen.gpus:
        yield from _without(host, provider, "the driver shows no GPU")
        return
    models = ", ".join(dict.fromkeys(gpu.model for gpu in seen.gpus if gpu.leasable)) or "cut, no instances"
    count = sum(gpu.leasable for gpu in seen.gpus)
    yield ok("gpus", f"{count}: {models}; driver {seen.driver or '?'}, CUDA up to {seen.max_cuda or '?'}")
    state = cdi.state(seen)
    if state.ready:
        yield ok("cdi", f"each of them has its name in the specifications of {cdi.KIND}")
    else:
        level = warn if state.names else fail
        yield level("cdi", f"{state.problem}; {len(state.names)} of {count} can be used", state.remedy or "")


def _without(host: Host, provider: str, reason: str) -> Iterator[Finding]:
    """No GPU is all right on a host without any, and only there."""
    if provider != "nvml":
        yield fail("gpus", reason, f"sudo editor {provider}")
    elif os.path.exists(host.at(MODULE)):
        yield fail("gpus", f"the kernel has the NVIDIA driver, but {reason}", "nvidia-smi")
    else:
        yield ok("gpus", "this host has none: no NVIDIA driver is loaded")


CHECKS = (gpus,)
