"""A monitor as the service has it, with a test on its other side."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from pages import records as shared
from pages.canned import Canned, Stream
from pages.workspace import records

STREAM = f"GET {records.PATH}/monitor/stream"
GIB = shared.GIB


def gpu(number: int, pid: int) -> dict[str, Any]:
    """A GPU that a process of the workspace keeps busy."""
    return {
        "uuid": shared.UUIDS[number],
        "model": "NVIDIA H100 80GB HBM3",
        "vram_bytes": 80 * GIB,
        "used_bytes": int(71.4 * GIB),
        "utilization_percent": 97 - number,
        "processes": [{"pid": pid, "used_bytes": int(71.4 * GIB)}],
    }


def process(pid: int, command: str, cpu: float, memory: float) -> dict[str, Any]:
    """One process."""
    sizes = {"cpu_percent": cpu, "memory_bytes": int(memory * GIB)}
    return {"pid": pid, "parent": 1, "command": command} | sizes


def sample(at: float = 0.0, **more: Any) -> dict[str, Any]:
    """What is used so many seconds after a beginning."""
    begin = datetime(2026, 11, 24, 14, 17, tzinfo=UTC)
    found: dict[str, Any] = {
        "at": (begin + timedelta(seconds=at)).isoformat(),
        "source": "cgroup",
        "cpu_percent": 1820.0,
        "cpu_limit": 32.0,
        "memory_bytes": 171 * GIB,
        "memory_limit_bytes": 256 * GIB,
        "pids": 212,
        "pids_limit": None,
        "gpus": [gpu(0, 418377), gpu(1, 418378)],
        "processes": [
            process(418377, "python train.py --config 7b.yaml", 792, 82.4),
            process(418378, "python train.py --config 7b.yaml", 788, 81.9),
            process(431877, "bash", 0, 0.006),
        ],
        "more_processes": 209,
    }
    return found | more


def hardware() -> dict[str, Any]:
    """The GPUs of the host."""
    known = {"model": "NVIDIA H100 80GB HBM3", "vram_bytes": 80 * GIB, "mig": False, "cdi": None}
    gpus = [
        known | {"index": index, "uuid": uuid, "compute_capability": None}
        for index, uuid in enumerate(shared.UUIDS)
    ]
    return {"provider": "nvml", "driver": "570", "max_cuda": "12.8", "cdi": None, "gpus": gpus}


class Samples:
    """The stream, with a test on its other side."""

    def __init__(self, canned: Canned, first: list[dict[str, Any]]) -> None:
        self.first = first
        self.streams: list[Stream] = []
        canned.answers[STREAM] = self._open
        canned.answers["GET /api/servers/hardware"] = hardware()

    def tell(self, kind: str, data: dict[str, Any] | None = None) -> None:
        """Send an event."""
        for one in self.streams:
            one.send_raw(f"event: {kind}\ndata: {json.dumps(data or {})}")

    def _open(self) -> Stream:
        self.streams.append(Stream())
        for data in self.first:
            self.streams[-1].send_raw(f"event: sample\ndata: {json.dumps(data)}")
        return self.streams[-1]
