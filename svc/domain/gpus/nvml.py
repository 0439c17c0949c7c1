"""NVML, the driver's library, through pynvml: GPUs, their MIG instances and processes.

Initialised for each reading and shut down after it, so that the driver can be
replaced while the service runs. Properties that are not reported are None.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.domain.gpus.gpus import GPUS_MAX, NVML, Activity, Gpu, GpuProcess, Hardware, NotSeenError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROCESSES_MAX = 4096  # of one GPU


class _Unit(NamedTuple):
    """The handle of a GPU, or with `instance` of one of its MIG instances."""

    handle: Any
    parent: Any
    instance: int | None


def inventory() -> Hardware:
    """Read the GPUs; raises NotSeenError with the reason when NVML cannot be used."""
    with _initialized() as pynvml:
        gpus = [_gpu(pynvml, unit) for unit in _units(pynvml)]
        cuda = _query(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return Hardware(
            NVML,
            _query(pynvml, pynvml.nvmlSystemGetDriverVersion),
            f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            [gpu for gpu in gpus if gpu],
        )


def activity() -> Activity:
    """Read the processes, utilisation and used memory of the GPUs; raises NotSeenError, as inventory()."""
    found = Activity([], {}, {})
    with _initialized() as pynvml:
        for unit in _units(pynvml):
            uuid = _query(pynvml, pynvml.nvmlDeviceGetUUID, unit.handle)
            if uuid is None:
                continue
            if unit.instance is not None or not _in_mig_mode(
                pynvml, unit.handle
            ):  # the instances report their own
                found.processes.extend(_processes(pynvml, unit.handle, uuid))
            rates = _query(pynvml, pynvml.nvmlDeviceGetUtilizationRates, unit.handle)
            if rates is not None:
                found.utilization[uuid] = int(rates.gpu)
            memory = _query(pynvml, pynvml.nvmlDeviceGetMemoryInfo, unit.handle)
            if memory is not None:
                found.used_bytes[uuid] = int(memory.used)
    return found


@contextmanager
def _initialized() -> Iterator[Any]:
    try:
        import pynvml  # imported late: half a megabyte, used only on hosts with GPUs
    except ImportError:
        raise NotSeenError("the module pynvml (nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        raise NotSeenError("this host has no NVIDIA driver library", "info") from None
    except pynvml.NVMLError as error:
        raise NotSeenError(f"NVML cannot be initialised: {error}") from None
    try:
        yield pynvml
    finally:
        _query(pynvml, pynvml.nvmlShutdown)


def _query(pynvml: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result of an NVML function; None when this driver or GPU does not support it, or says no text."""
    try:
        return function(*arguments)
    except (pynvml.NVMLError, pynvml.NVMLLibraryMismatchError):  # the latter: the driver is too old
        return None
    except UnicodeDecodeError:  # a name that is not UTF-8, as some drivers in virtual machines give
        return None


def _units(pynvml: Any) -> Iterator[_Unit]:
    """Every GPU in the driver's order, each in MIG mode followed by its instances."""
    for number in range(min(_query(pynvml, pynvml.nvmlDeviceGetCount) or 0, GPUS_MAX)):
        handle = _query(pynvml, pynvml.nvmlDeviceGetHandleByIndex, number)
        if handle is None:
            continue
        yield _Unit(handle, handle, None)
        if not _in_mig_mode(pynvml, handle):
            continue
        for index in range(_query(pynvml, pynvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            instance = _query(pynvml, pynvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, index)
            if instance is not None:  # indexes without an instance
                yield _Unit(instance, handle, index)


def _in_mig_mode(pynvml: Any, handle: Any) -> bool:
    mig = _query(pynvml, pynvml.nvmlDeviceGetMigMode, handle)
    return bool(mig and mig[0])  # the current mode; the other one is pending until a reset


def _gpu(pynvml: Any, unit: _Unit) -> Gpu | None:
    """One GPU or instance; None for one that has fallen off the bus."""
    uuid = _query(pynvml, pynvml.nvmlDeviceGetUUID, unit.handle)
    if uuid is None:
        return None
    memory = _query(pynvml, pynvml.nvmlDeviceGetMemoryInfo, unit.handle)
    capability = _query(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, unit.parent)
    return Gpu(
        uuid=uuid,
        model=_query(pynvml, pynvml.nvmlDeviceGetName, unit.handle) or "NVIDIA GPU",
        vram_bytes=int(memory.total) if memory else None,
        compute_capability="{}.{}".format(*capability) if capability else None,
        mig=unit.instance is not None or _in_mig_mode(pynvml, unit.parent),
        minor=_query(pynvml, pynvml.nvmlDeviceGetMinorNumber, unit.parent),
        instance=unit.instance,
    )


def _processes(pynvml: Any, handle: Any, uuid: str) -> Iterator[GpuProcess]:
    """Each process once, whether it uses compute, graphics or both."""
    seen: dict[int, int | None] = {}
    for function in (
        pynvml.nvmlDeviceGetComputeRunningProcesses,
        pynvml.nvmlDeviceGetGraphicsRunningProcesses,
    ):
        for process in (_query(pynvml, function, handle) or [])[:PROCESSES_MAX]:
            seen[process.pid] = max(seen.get(process.pid) or 0, process.usedGpuMemory or 0) or None
    return (GpuProcess(uuid, pid, used) for pid, used in seen.items())
