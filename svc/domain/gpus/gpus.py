"""The records about GPUs that every provider returns."""

from __future__ import annotations

from typing import NamedTuple

NONE, NVML = "none", "nvml"
GPUS_MAX = 64  # of one host


class Gpu(NamedTuple):
    """One GPU, or one MIG instance of a GPU.

    Properties that the driver does not report are None. `mig`: a GPU in MIG mode, or
    an instance (with a uuid that begins with MIG-). `minor`: the number of the device
    node, for an instance that of its GPU; `instance`: the index among the GPU's instances.
    """

    uuid: str
    model: str
    vram_bytes: int | None
    compute_capability: str | None
    mig: bool
    minor: int | None = None
    instance: int | None = None

    @property
    def leasable(self) -> bool:
        """Whether programs can run on it; in MIG mode they run only on the instances."""
        return not self.mig or self.uuid.startswith("MIG-")


class Hardware(NamedTuple):
    """The GPUs of this host, the driver's version and the maximum CUDA version that it supports.

    `unread` is why there are none although the host has a driver for them, or is to have.
    """

    provider: str
    driver: str | None
    max_cuda: str | None
    gpus: list[Gpu]
    unread: str | None = None


class GpuProcess(NamedTuple):
    """A process that uses a GPU, by its pid on the host; `used_bytes` is None when it is not reported."""

    uuid: str
    pid: int
    used_bytes: int | None


class Activity(NamedTuple):
    """The processes on the GPUs, and of each GPU, where known, its utilisation in percent and used memory."""

    processes: list[GpuProcess]
    utilization: dict[str, int]
    used_bytes: dict[str, int]


class NotSeenError(Exception):
    """The reason why GPUs cannot be read, and its log level."""

    def __init__(self, reason: str, level: str = "warning") -> None:
        super().__init__(reason)
        self.level = level


class NoAnswerError(NotSeenError):
    """The driver does not answer: whoever asks it again waits as well."""

    def __init__(self) -> None:
        super().__init__("the GPU driver does not answer", "error")
