"""A host of fake GPUs for tests of leases and starts: the file, its CDI specification, who uses them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.domain.gpus import cdi, hardware

DRIVER = "550.54.15"


def uuid(number: int) -> str:
    """The uuid of one of the host's GPUs."""
    return f"GPU-{number}"


def device(number: int, **edits: Any) -> dict[str, Any]:
    """A device of a specification, whose node is there on every host."""
    return {"name": uuid(number), "containerEdits": {"deviceNodes": [{"path": "/dev/null"}]} | edits}


class Gpus:
    """Four GPUs, each with its CDI device; a test takes some away, or has them used."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "gpus.json"
        self.specification = folder / "cdi" / "nvidia.json"
        self.specification.parent.mkdir()
        self.fakes = [
            {"uuid": uuid(number), "model": "NVIDIA H100", "vram_bytes": 2**36, "compute_capability": "9.0",
             "mig": False, "minor": number} for number in range(4)
        ]  # fmt: skip
        self.devices = [device(number) for number in range(4)]
        self.edits: dict[str, Any] = {}
        self.write()

    def write(self) -> None:
        """Have the files say what is here now, and the next look see it."""
        described = {"driver": DRIVER, "max_cuda": "12.4", "gpus": self.fakes}
        self.file.write_text(json.dumps(described))
        document = {
            "cdiVersion": "0.5.0", "kind": cdi.KIND, "devices": self.devices, "containerEdits": self.edits,
        }  # fmt: skip
        self.specification.write_text(json.dumps(document))
        configured(gpu_provider=str(self.file))

    def unreadable(self) -> None:
        """Have the provider fail, as a driver does that does not fit its library."""
        self.file.write_text("")
        configured(gpu_provider=str(self.file))

    def used(self, number: int, *pids: int) -> None:
        """Have one used by these processes."""
        self.fakes[number]["processes"] = [{"pid": pid, "used_bytes": 1000} for pid in pids]
        self.write()


@contextmanager
def host(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Gpus]:
    """These GPUs and their specification are this host's."""
    monkeypatch.setattr(cdi, "DIRECTORIES", (str(folder / "cdi"), str(folder / "none")))
    try:
        yield Gpus(folder)
    finally:
        configured(gpu_provider=hardware.NONE)
