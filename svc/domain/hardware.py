"""The host's GPUs as SVC_GPU_PROVIDER sees them: NVML through pynvml, a file of fake ones, or none.

A host without the NVIDIA library, or whose driver does not answer, has no GPUs;
why is said once in the log. Nothing here reserves anything. A file of fake GPUs
(docs/decisions/0018) is one JSON object:

    {"driver": "550.54.15", "max_cuda": "12.4",
     "gpus": [{"uuid": "GPU-...", "model": "NVIDIA H100", "vram_bytes": 85520809984,
               "compute_capability": "9.0", "mig": false}]}
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from svc.log import log

if TYPE_CHECKING:
    from collections.abc import Callable

NONE, NVML = "none", "nvml"
LOOK_S = 5.0  # a look costs up to tens of milliseconds, and GPUs seldom come and go
FILE_MAX = 64 * 1024
GPUS_MAX = 64
MODEL_MAX = 96

_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,60}")


class Gpu(NamedTuple):
    """One GPU; what the driver does not tell is None. `mig`: it is cut into instances."""

    uuid: str
    model: str
    vram_bytes: int | None
    compute_capability: str | None
    mig: bool


class Hardware(NamedTuple):
    """The GPUs of this host, its driver's version and the newest CUDA version that this supports."""

    provider: str
    driver: str | None
    max_cuda: str | None
    gpus: list[Gpu]


class _Look:
    """The last look at the hardware, which is good for LOOK_S; one thread looks at a time."""

    def __init__(self, provider: str) -> None:
        self.provider = provider
        self.lock = threading.Lock()
        self.good_until = 0.0
        self.seen = Hardware(provider, None, None, [])
        self.said = ""

    def inventory(self) -> Hardware:
        with self.lock:
            if time.monotonic() >= self.good_until:
                self.seen = self._now()
                self.good_until = time.monotonic() + LOOK_S
            return self.seen

    def _now(self) -> Hardware:
        if self.provider == NONE:
            return Hardware(NONE, None, None, [])
        look = _by_nvml if self.provider == NVML else _from_file
        try:
            seen = look(self.provider)
        except _NotSeenError as error:
            if str(error) != self.said:  # not each few seconds anew
                self.said = str(error)
                log("domain", f"no GPUs: {error}", error.level, provider=self.provider)
            return Hardware(self.provider, None, None, [])
        self.said = ""
        return seen


class _NotSeenError(Exception):
    """Why there are no GPUs to be seen; at which level the log has it."""

    def __init__(self, reason: str, level: str = "warning") -> None:
        super().__init__(reason)
        self.level = level


_look = _Look(NONE)


def use(provider: str) -> None:
    """See GPUs this way from now on; each process says so once, from SVC_GPU_PROVIDER. Looks at nothing."""
    global _look
    _look = _Look(provider)


def inventory() -> Hardware:
    """The GPUs that there are, as of at most LOOK_S ago."""
    return _look.inventory()


def version(text: str) -> tuple[int, int]:
    """A CUDA version or compute capability as numbers, to compare: 12.10 is above 12.4."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


# --- NVML -----------------------------------------------------------------------------------


def _by_nvml(provider: str) -> Hardware:
    """What the driver says now; held open no longer than that, so that the driver can be exchanged."""
    try:
        import pynvml  # half a megabyte, and only hosts with GPUs have the library that it opens
    except ImportError:
        raise _NotSeenError("the module pynvml (nvidia-ml-py) is not installed") from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound:
        raise _NotSeenError("this host has no NVIDIA driver library", "info") from None
    except pynvml.NVMLError as error:
        raise _NotSeenError(f"NVML does not start: {error}") from None
    try:
        handles = [_asked(pynvml, pynvml.nvmlDeviceGetHandleByIndex, number) for number in _numbers(pynvml)]
        gpus = [_gpu(pynvml, handle) for handle in handles if handle is not None]
        cuda = _asked(pynvml, pynvml.nvmlSystemGetCudaDriverVersion_v2)
        return Hardware(
            provider,
            _asked(pynvml, pynvml.nvmlSystemGetDriverVersion),
            f"{cuda // 1000}.{cuda % 1000 // 10}" if cuda else None,
            [gpu for gpu in gpus if gpu],
        )
    finally:
        _asked(pynvml, pynvml.nvmlShutdown)


def _numbers(pynvml: Any) -> range:
    return range(min(_asked(pynvml, pynvml.nvmlDeviceGetCount) or 0, GPUS_MAX))


def _asked(pynvml: Any, question: Callable[..., Any], *given: Any) -> Any:
    """NVML's answer; None for what this driver or this GPU does not tell."""
    try:
        return question(*given)
    except pynvml.NVMLError:
        return None


def _gpu(pynvml: Any, handle: Any) -> Gpu | None:
    """One GPU; None for one that has fallen off the bus."""
    uuid = _asked(pynvml, pynvml.nvmlDeviceGetUUID, handle)
    if uuid is None:
        return None
    memory = _asked(pynvml, pynvml.nvmlDeviceGetMemoryInfo, handle)
    capability = _asked(pynvml, pynvml.nvmlDeviceGetCudaComputeCapability, handle)
    mig = _asked(pynvml, pynvml.nvmlDeviceGetMigMode, handle)
    return Gpu(
        uuid=uuid,
        model=_asked(pynvml, pynvml.nvmlDeviceGetName, handle) or "NVIDIA GPU",
        vram_bytes=int(memory.total) if memory else None,
        compute_capability="{}.{}".format(*capability) if capability else None,
        mig=bool(mig and mig[0]),  # as it is now; the other one is after a reset
    )


# --- a file -----------------------------------------------------------------------------------


def _from_file(path: str) -> Hardware:
    """The fake GPUs of a file, read anew each time so that one can be lost and come back."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.loads(file.read(FILE_MAX))
        driver, cuda = document["driver"], document["max_cuda"]
        gpus = [Gpu(**fake) for fake in document["gpus"][:GPUS_MAX]]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise _NotSeenError(
            f"{path} does not describe GPUs: {type(error).__name__}: {error}", "error"
        ) from None
    whole = _is_text(driver) and _is_version(cuda) and all(map(_is_whole, gpus))
    if not whole or len({gpu.uuid for gpu in gpus}) != len(gpus):
        raise _NotSeenError(
            f"{path} does not describe GPUs: a value is of another kind, or one is twice", "error"
        )
    return Hardware(path, driver, cuda, gpus)


def _is_whole(gpu: Gpu) -> bool:
    return (
        isinstance(gpu.uuid, str)
        and _UUID.fullmatch(gpu.uuid) is not None
        and _is_text(gpu.model)
        and gpu.model is not None
        and (gpu.vram_bytes is None or (type(gpu.vram_bytes) is int and gpu.vram_bytes > 0))
        and _is_version(gpu.compute_capability)
        and type(gpu.mig) is bool
    )


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.isprintable() and len(value) <= MODEL_MAX)


def _is_version(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _VERSION.fullmatch(value) is not None)
