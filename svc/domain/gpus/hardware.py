"""The host's GPUs as SVC_GPU_PROVIDER sees them: NVML through pynvml, a file of fake ones, or none.

A host without the NVIDIA library, or whose driver does not answer, has no GPUs;
why is said once in the log. Nothing here reserves anything. A file of fake GPUs
(docs/decisions/0018) is one JSON object:

    {"driver": "550.54.15", "max_cuda": "12.4",
     "gpus": [{"uuid": "GPU-...", "model": "NVIDIA H100", "vram_bytes": 85520809984,
               "compute_capability": "9.0", "mig": false, "minor": 0, "utilization": 12,
               "processes": [{"pid": 4711, "used_bytes": 1073741824}]}]}
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from svc.domain.gpus.gpus import GPUS_MAX, NONE, NVML, Activity, Gpu, GpuProcess, Hardware, NotSeenError
from svc.log import log

if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_S = 5.0  # a look costs up to tens of milliseconds, and GPUs seldom come and go
ACTIVITY_S = 1.0  # who uses them changes at any time
FILE_MAX = 64 * 1024
MODEL_MAX = 96

_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,60}")
_OPTIONAL = ("minor", "instance")


Seen = TypeVar("Seen")


class _Look(Generic[Seen]):
    """The last look, which is good for some seconds; one thread looks at a time."""

    def __init__(self, provider: str, look: Callable[[str], Seen], blind: Seen, good_s: float) -> None:
        self.provider = provider
        self.look = look
        self.blind = blind
        self.good_s = good_s
        self.lock = threading.Lock()
        self.good_until = 0.0
        self.seen = blind
        self.said = ""

    def now(self) -> Seen:
        with self.lock:
            if time.monotonic() >= self.good_until:
                self.seen = self._anew()
                self.good_until = time.monotonic() + self.good_s
            return self.seen

    def _anew(self) -> Seen:
        try:
            seen = self.look(self.provider)
        except NotSeenError as error:
            if str(error) != self.said:  # not each few seconds anew
                self.said = str(error)
                log("domain", f"no GPUs: {error}", error.level, provider=self.provider)
            return self.blind
        self.said = ""
        return seen


def _nothing(provider: str) -> Hardware:
    return Hardware(provider, None, None, [])


def use(provider: str) -> None:
    """See GPUs this way from now on; each process says so once, from SVC_GPU_PROVIDER. Looks at nothing."""
    global _inventory, _activity
    _inventory = _Look(provider, look, _nothing(provider), LOOK_S)
    _activity = _Look(provider, _activity_of, Activity([], {}), ACTIVITY_S)


def inventory() -> Hardware:
    """The GPUs that there are, as of at most LOOK_S ago; one that is cut beside its instances."""
    return _inventory.now()


def processes() -> list[GpuProcess]:
    """Who uses a GPU, svc's workspaces and all others, as of at most ACTIVITY_S ago."""
    return _activity.now().processes


def utilization() -> dict[str, int]:
    """How busy each GPU is, in percent by uuid, as of at most ACTIVITY_S ago; of an instance nobody knows."""
    return _activity.now().utilization


def version(text: str) -> tuple[int, int]:
    """A CUDA version or compute capability as numbers, to compare: 12.10 is above 12.4."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def fits(gpu: Gpu, needs: dict[str, Any]) -> bool:
    """Whether a GPU is enough for what a template needs; what its driver does not tell counts as enough."""
    vram, capability = needs.get("min_vram_bytes"), needs.get("min_compute_capability")
    if vram and gpu.vram_bytes is not None and gpu.vram_bytes < vram:
        return False
    if not capability or not gpu.compute_capability:
        return True
    return version(gpu.compute_capability) >= version(capability)


def look(provider: str) -> Hardware:
    """The GPUs as a provider sees them now; raises NotSeenError with the reason why nothing can be seen."""
    if provider == NONE:
        return _nothing(NONE)
    if provider == NVML:
        from svc.domain.gpus import nvml  # only hosts with GPUs have the library that it opens

        return nvml.inventory()
    return _described(provider)[0]


def _activity_of(provider: str) -> Activity:
    if provider == NONE:
        return Activity([], {})
    if provider == NVML:
        from svc.domain.gpus import nvml

        return nvml.activity()
    return _described(provider)[1]


# --- a file -----------------------------------------------------------------------------------


def _described(path: str) -> tuple[Hardware, Activity]:
    """The fake GPUs of a file, read anew each time so that one can be lost and come back."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.loads(file.read(FILE_MAX))
        driver, cuda = document["driver"], document["max_cuda"]
        gpus, activity = [], Activity([], {})
        for fake in document["gpus"][:GPUS_MAX]:
            _read_activity(fake, activity)
            gpus.append(Gpu(**fake))
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise NotSeenError(
            f"{path} does not describe GPUs: {type(error).__name__}: {error}", "error"
        ) from None
    whole = _is_text(driver) and _is_version(cuda) and all(map(_is_whole, gpus)) and _is_true(activity)
    if not whole or len({gpu.uuid for gpu in gpus}) != len(gpus):
        raise NotSeenError(
            f"{path} does not describe GPUs: a value is of another kind, or one is twice", "error"
        )
    return Hardware(path, driver, cuda, gpus), activity


def _read_activity(fake: dict[str, Any], activity: Activity) -> None:
    """Take the keys that are no property of the GPU out of its description."""
    for process in fake.pop("processes", []):
        activity.processes.append(GpuProcess(fake["uuid"], **process))
    if "utilization" in fake:
        activity.utilization[fake["uuid"]] = fake.pop("utilization")


def _is_whole(gpu: Gpu) -> bool:
    return (
        isinstance(gpu.uuid, str)
        and _UUID.fullmatch(gpu.uuid) is not None
        and _is_text(gpu.model)
        and gpu.model is not None
        and (gpu.vram_bytes is None or (type(gpu.vram_bytes) is int and gpu.vram_bytes > 0))
        and _is_version(gpu.compute_capability)
        and type(gpu.mig) is bool
        and all(_is_number(getattr(gpu, name)) for name in _OPTIONAL)
    )


def _is_true(activity: Activity) -> bool:
    percents = activity.utilization.values()
    return all(type(percent) is int and 0 <= percent <= 100 for percent in percents) and all(
        type(process.pid) is int and process.pid > 0 and _is_number(process.used_bytes)
        for process in activity.processes
    )


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.isprintable() and len(value) <= MODEL_MAX)


def _is_version(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _VERSION.fullmatch(value) is not None)


_inventory = _Look(NONE, look, _nothing(NONE), LOOK_S)  # until somebody says how
_activity = _Look(NONE, _activity_of, Activity([], {}), ACTIVITY_S)
