"""Doctor checks of GPUs: whether the driver responds, and whether CDI names them."""

from __future__ import annotations

import os
from collections.abc import Iterator

from svc.admin.findings import Finding, Host, fail, ok, warn
from svc.domain.gpus import cdi, hardware
from svc.domain.gpus.gpus import NONE, NoAnswerError, NotSeenError

KERNEL_LOG = "sudo dmesg --level err,warn"  # nvidia-smi would hang as well
MODULE = "/proc/driver/nvidia/version"  # there while the kernel has the driver


def gpus(host: Host) -> Iterator[Finding]:
    """The GPUs that SVC_GPU_PROVIDER reports, and their CDI names."""
    provider = host.settings.gpu_provider
    if provider == NONE:
        yield ok("gpus", "SVC_GPU_PROVIDER is none: workspaces get no GPUs")
        return
    try:
        seen = hardware.inspect_once(provider)
    except NoAnswerError as error:
        yield from _without(host, provider, str(error), KERNEL_LOG)
        return
    except NotSeenError as error:
        yield from _without(host, provider, str(error))
        return
    if not seen.gpus:
        yield from _without(host, provider, "the driver reports no GPU")
        return
    models = (
        ", ".join(dict.fromkeys(gpu.model for gpu in seen.gpus if gpu.leasable))
        or "in MIG mode without instances"
    )
    count = sum(gpu.leasable for gpu in seen.gpus)
    yield ok("gpus", f"{count}: {models}; driver {seen.driver or '?'}, CUDA up to {seen.max_cuda or '?'}")
    state = cdi.state(seen)
    if state.ready:
        yield ok("cdi", f"every GPU has a name in the CDI specifications of {cdi.KIND}")
    else:
        level = warn if state.names else fail
        yield level("cdi", f"{state.problem}; {len(state.names)} of {count} are usable", state.remedy or "")


def _without(host: Host, provider: str, reason: str, remedy: str = "nvidia-smi") -> Iterator[Finding]:
    """Without GPUs: ok only where the kernel has no NVIDIA driver."""
    if provider != "nvml":
        yield fail("gpus", reason, f"sudo editor {provider}")
    elif os.path.exists(host.at(MODULE)):
        yield fail("gpus", f"the NVIDIA driver is loaded, but {reason}", remedy)
    else:
        yield ok("gpus", "none on this host: no NVIDIA driver is loaded")


CHECKS = (gpus,)
