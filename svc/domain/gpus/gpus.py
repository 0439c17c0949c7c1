"""What is known of GPUs: the shapes that every way of seeing them fills, and everybody else reads."""

from __future__ import annotations

from typing import NamedTuple

NONE, NVML = "none", "nvml"
GPUS_MAX = 64  # of one host


class Gpu(NamedTuple):
    """What can be leased: one GPU, or one MIG instance of a GPU that is cut into them.

    What the driver does not tell is None. `mig`: it is cut, or one of the pieces
    (its uuid begins with MIG-). `minor`: the number of its device node, an
    instance's that of its GPU; `instance`: which of its GPU's instances it is.
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
        """Whether a program can run on it; on a GPU that is cut, only on its instances."""
        return not self.mig or self.uuid.startswith("MIG-")


class Hardware(NamedTuple):
    """The GPUs of this host, its driver's version and the newest CUDA version that this supports."""

    provider: str
    driver: str | None
    max_cuda: str | None
    gpus: list[Gpu]


class GpuProcess(NamedTuple):
    """A process that uses a GPU, by its number on the host; its bytes are None where nothing tells them."""

    uuid: str
    pid: int
    used_bytes: int | None


class Activity(NamedTuple):
    """Who uses the GPUs, and how busy each one is in percent, where that is known."""

    processes: list[GpuProcess]
    utilization: dict[str, int]


class NotSeenError(Exception):
    """Why there are no GPUs to be seen; at which level the log has it."""

    def __init__(self, reason: str, level: str = "warning") -> None:
        super().__init__(reason)
        self.level = level
