"""NVML, the driver's own library, through pynvml: the GPUs, their MIG instances, who uses them.

Opened for each look and closed after it, so that the driver can be exchanged
under a service that runs. Whatever this driver or this GPU does not tell is None.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.domain.gpus.gpus import GPUS_MAX, NVML, Activity, Gpu, GpuProcess, Hardware, NotSeenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROCESSES_MAX = 4096  # of one GPU


class _Unit(NamedTuple):
    """A handle: a GPU's, or with `instance` one of its MIG instances'."""

    handle: Any
    parent: Any
    instance: int | None


def inventory() -> Hardware:
    """What there is now; raises NotSeenError with the reason why nothing can be seen."""
    with _opened() as pynvml:
        gpus = [_gpu(pynvml, unit) for unit in _units(pynvml)]
        cuda = _asked(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return Hardware(
            NVML,
            _asked(pynvml, pynvml.nvmlSystemGetDriverVersion),
            f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            [gpu for gpu in gpus if gpu],
        )


def activity() -> Activity:
    """Who uses what there is, and how busy it is; raises NotSeenError as inventory() does."""
    seen = Activity([], {})
    with _opened() as pynvml:
        for unit in _units(pynvml):
            uuid = _asked(pynvml, pynvml.nvmlDeviceGetUUID, unit.handle)
            if uuid is None:
                continue
            if unit.instance is not None or not _is_cut(pynvml, unit.handle):  # its instances tell theirs
                seen.processes.extend(_processes(pynvml, unit.handle, uuid))
            rates = _asked(pynvml, pynvml.nvmlDeviceGetUtilizationRates, unit.handle)
            if rates is not None:
                seen.utilization[uuid] = int(rates.gpu)
    return seen


@contextmanager
def _opened() -> Iterator[Any]:
    try:
        import pynvml  # half a megabyte, and only hosts with GPUs have the library that it opens
    except ImportError:
        raise NotSeenError("the module pynvml (nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        raise NotSeenError("this host has no NVIDIA driver library", "info") from None
    except pynvml.NVMLError as error:
        raise NotSeenError(f"NVML does not start: {error}") from None
    try:
        yield pynvml
    finally:
        _asked(pynvml, pynvml.nvmlShutdown)


def _asked(pynvml: Any, question: Callable[..., Any], *given: Any) -> Any:
    """NVML's answer; None for what this driver or this GPU does not tell."""
    try:
        return question(*given)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):  # the latter: a driver too old to know it
        return None


def _units(pynvml: Any) -> Iterator[_Unit]:
    """Every GPU in the driver's order, one that is cut followed by its instances."""
    for number in range(min(_asked(pynvml, pynvml.nvmlDeviceGetCount) or 0, GPUS_MAX)):
        handle = _asked(pynvml, pynvml.nvmlDeviceGetHandleByIndex, number)
        if handle is None:
            continue
        yield _Unit(handle, handle, None)
        if not _is_cut(pynvml, handle):
            continue
        for place in range(_asked(pynvml, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            instance = _asked(pynvml, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
            if instance is not None:  # places are left empty
                yield _Unit(instance, handle, place)


def _is_cut(pynvml: Any, handle: Any) -> bool:
    mig = _asked(pynvml, pynvml.nvmlDeviceGetMigMode, handle)
    return bool(mig and mig[0])  # as it is now; the other one is after a reset


def _gpu(pynvml: Any, unit: _Unit) -> Gpu | None:
    """One GPU or instance; None for one that has fallen off the bus."""
    uuid = _asked(pynvml, pynvml.nvmlDeviceGetUUID, unit.handle)
    if uuid is None:
        return None
    memory = _asked(pynvml, pynvml.nvmlDeviceGetMemoryInfo, unit.handle)
    capability = _asked(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, unit.parent)
    return Gpu(
        uuid=uuid,
        model=_asked(pynvml, pynvml.nvmlDeviceGetName, unit.handle) or "NVIDIA GPU",
        vram_bytes=int(memory.total) if memory else None,
        compute_capability="{}.{}".format(*capability) if capability else None,
        mig=unit.instance is not None or _is_cut(pynvml, unit.parent),
        minor=_asked(pynvml, pynvml.nvmlDeviceGetMinorNumber, unit.parent),
        instance=unit.instance,
    )


def _processes(pynvml: Any, handle: Any, uuid: str) -> Iterator[GpuProcess]:
    """Each process once, whether it computes, draws or does both."""
    seen: dict[int, int | None] = {}
    for question in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for process in (_asked(pynvml, question, handle) or [])[:PROCESSES_MAX]:
            seen[process.pid] = max(seen.get(process.pid) or 0, process.usedGpuMemory or 0) or None
    return (GpuProcess(uuid, pid, used) for pid, used in seen.items())
