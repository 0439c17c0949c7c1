"""The host's GPUs from SVC_GPU_PROVIDER: NVML through pynvml, a file of fake GPUs, or none.

A host without the NVIDIA library, or whose driver does not respond within ANSWER_S, has no GPUs; the
reason is logged once. Nothing here reserves a GPU. A file of fake GPUs
(docs/decisions/0018) is one JSON object:

    {"driver": "550.54.15", "max_cuda": "12.4",
     "gpus": [{"uuid": "GPU-...", "model": "NVIDIA H100", "vram_bytes": 85520809984,
               "compute_capability": "9.0", "mig": false, "minor": 0, "utilization": 12,
               "used_bytes": 2147483648, "processes": [{"pid": 4711, "used_bytes": 1073741824}]}]}
"""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from svc.domain import configuration
from svc.domain.gpus.gpus import (
    GPUS_MAX,
    NONE,
    NVML,
    Activity,
    Gpu,
    GpuProcess,
    Hardware,
    NoAnswerError,
    NotSeenError,
)
from svc.log import log

if TYPE_CHECKING:
    from collections.abc import Callable

INVENTORY_S = 5.0  # a reading takes up to tens of milliseconds, and GPUs rarely change
ACTIVITY_S = 1.0  # the processes on a GPU change at any time
ANSWER_S = 3.0  # for the driver; one that takes longer may hang, in a call that nothing interrupts
KNOWN_S = 60.0  # for as long the last reading counts while the driver does not answer: it may only be slow
FILE_MAX = 64 * 1024
MODEL_MAX = 96

_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}")
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,60}")
_OPTIONAL = ("minor", "instance")


Value = TypeVar("Value")


class _Reading(Generic[Value]):
    """One reading by a thread of its own, so that a driver that hangs holds nobody else."""

    def __init__(self, read: Callable[[str], Value], provider: str) -> None:
        self.read, self.provider = read, provider
        self.value: Value
        self.error: Exception | None = None
        self.done = threading.Event()
        threading.Thread(target=self._run, name="gpus", daemon=True).start()

    def _run(self) -> None:
        try:
            self.value = self.read(self.provider)
        except Exception as error:  # noqa: BLE001  raised where the value is awaited
            self.error = error
        self.done.set()

    def result(self) -> Value:
        """The value, or what the reading has raised, once it is done."""
        if self.error is not None:
            raise self.error
        return self.value


class _Cache(Generic[Value]):
    """The last reading of the configured provider, valid for some seconds; one thread reads at a time.

    While a driver hangs, the first caller waits for ANSWER_S, and later ones for nothing; what was read
    within the last KNOWN_S counts still.
    """

    def __init__(
        self, read: Callable[[str], Value], absent: Callable[[str, NotSeenError], Value], valid_s: float
    ) -> None:
        self.read = read
        self.absent = absent  # the value when the provider cannot be read
        self.valid_s = valid_s
        self.lock = threading.Lock()
        self.configuration: configuration.Configuration | None = None  # for which the value was read
        self.value: Value
        self.valid_until = 0.0
        self.logged = ""
        self.reading: _Reading[Value] | None = None  # of the driver, not answered or not used yet
        self.answered_at = -KNOWN_S

    def get(self) -> Value:
        with self.lock:
            if self.configuration is not configuration.current:
                self.configuration, self.valid_until, self.logged = configuration.current, 0.0, ""
                self.reading, self.answered_at = None, time.monotonic() - KNOWN_S
            if time.monotonic() >= self.valid_until:
                self.value = self._refresh(self.configuration.gpu_provider)
                self.valid_until = time.monotonic() + self.valid_s
            return self.value

    def _refresh(self, provider: str) -> Value:
        try:
            value = self._read_driver(provider) if provider == NVML else self.read(provider)
        except NotSeenError as error:
            if str(error) != self.logged:  # log each reason once, not every few seconds
                self.logged = str(error)
                log("domain", f"no GPUs: {error}", error.level, provider=provider)
            return self.absent(provider, error)
        self.logged = ""
        return value

    def _read_driver(self, provider: str) -> Value:
        """A new reading, or the late one of before: no second thread hangs beside the first."""
        wait_s = 0.0
        if self.reading is None:
            self.reading, wait_s = _Reading(self.read, provider), ANSWER_S
        if not self.reading.done.wait(wait_s):
            if time.monotonic() < self.answered_at + KNOWN_S:
                return self.value
            raise NoAnswerError
        reading, self.reading = self.reading, None
        value = reading.result()
        self.answered_at = time.monotonic()
        return value


def _nothing(provider: str, error: NotSeenError) -> Hardware:
    return Hardware(provider, None, None, [], None if error.level == "info" else str(error))


def inventory() -> Hardware:
    """The host's GPUs, at most INVENTORY_S old; a GPU in MIG mode is listed beside its instances."""
    return _inventory.get()


def processes() -> list[GpuProcess]:
    """All processes that use a GPU, of workspaces and others, at most ACTIVITY_S old."""
    return _activity.get().processes


def utilization() -> dict[str, int]:
    """Utilisation of each GPU in percent by uuid, at most ACTIVITY_S old; unknown for MIG instances."""
    return _activity.get().utilization


def used_bytes() -> dict[str, int]:
    """Used memory of each GPU and MIG instance by uuid, at most ACTIVITY_S old."""
    return _activity.get().used_bytes


def version(text: str) -> tuple[int, int]:
    """A CUDA version or compute capability as numbers, to compare: 12.10 is above 12.4."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def fits(gpu: Gpu, needs: dict[str, Any]) -> bool:
    """Whether a GPU meets a template's needs; properties that the driver does not report count as met."""
    vram, capability = needs.get("min_vram_bytes"), needs.get("min_compute_capability")
    if vram and gpu.vram_bytes is not None and gpu.vram_bytes < vram:
        return False
    if not capability or not gpu.compute_capability:
        return True
    return version(gpu.compute_capability) >= version(capability)


def inspect(provider: str) -> Hardware:
    """Read the GPUs from a provider; raises NotSeenError with the reason when it cannot be read."""
    if provider == NONE:
        return Hardware(NONE, None, None, [])
    if provider == NVML:
        from svc.domain.gpus import nvml  # imported only where it is configured

        return nvml.inventory()
    return _described(provider)[0]


def inspect_once(provider: str) -> Hardware:
    """As inspect, for a command: a driver that does not answer within ANSWER_S raises NoAnswerError."""
    reading = _Reading(inspect, provider)
    if not reading.done.wait(ANSWER_S):
        raise NoAnswerError
    return reading.result()


def _inspect_activity(provider: str) -> Activity:
    if provider == NONE:
        return Activity([], {}, {})
    if provider == NVML:
        from svc.domain.gpus import nvml

        return nvml.activity()
    return _described(provider)[1]


# --- a file -----------------------------------------------------------------------------------


def _described(path: str) -> tuple[Hardware, Activity]:
    """The fake GPUs of a file, read each time so that tests can remove and add GPUs."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.loads(file.read(FILE_MAX))
        driver, cuda = document["driver"], document["max_cuda"]
        gpus, activity = [], Activity([], {}, {})
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
            f"{path} does not describe GPUs: a value has the wrong type, or a uuid is used twice", "error"
        )
    return Hardware(path, driver, cuda, gpus), activity


def _read_activity(fake: dict[str, Any], activity: Activity) -> None:
    """Move the keys about activity from the GPU's description to `activity`."""
    for process in fake.pop("processes", []):
        activity.processes.append(GpuProcess(fake["uuid"], **process))
    if "utilization" in fake:
        activity.utilization[fake["uuid"]] = fake.pop("utilization")
    if "used_bytes" in fake:
        activity.used_bytes[fake["uuid"]] = fake.pop("used_bytes")


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
    return (
        all(type(percent) is int and 0 <= percent <= 100 for percent in percents)
        and all(type(count) is int and count >= 0 for count in activity.used_bytes.values())
        and all(
            type(process.pid) is int and process.pid > 0 and _is_number(process.used_bytes)
            for process in activity.processes
        )
    )


def _is_number(value: Any) -> bool:
    return value is None or (type(value) is int and value >= 0)


def _is_text(value: Any) -> bool:
    return value is None or (isinstance(value, str) and value.isprintable() and len(value) <= MODEL_MAX)


def _is_version(value: Any) -> bool:
    return value is None or (isinstance(value, str) and _VERSION.fullmatch(value) is not None)


_inventory = _Cache(inspect, _nothing, INVENTORY_S)
_activity = _Cache(_inspect_activity, lambda _provider, _error: Activity([], {}, {}), ACTIVITY_S)
