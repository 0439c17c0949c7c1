"""A host with fake GPUs, and a CDI specification that names them, for tests of domain and web."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from unit.configuring import configured

from svc.db.connect import database
from svc.domain.gpus import cdi
from svc.host.ids import now

VRAM = 80 * 2**30


def uuid(number: int) -> str:
    """The uuid of the fake GPU of that number."""
    return f"GPU-{number:08d}"


class GpuHost:
    """So many GPUs, of which each may have processes; `named` of them have a CDI name."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.specs = folder / "cdi"
        self.specs.mkdir()
        monkeypatch.setattr(cdi, "DIRECTORIES", (str(self.specs),))

    def have(self, count: int, *, named: int | None = None, **changes: dict[str, Any]) -> None:
        """Have these GPUs from now on; `gpu1={...}` changes the description of number 1."""
        gpus = [
            {
                "uuid": uuid(number), "model": "NVIDIA H100", "vram_bytes": VRAM, "compute_capability": "9.0",
                "mig": False, "minor": number,
            } | changes.get(f"gpu{number}", {})
            for number in range(count)
        ]  # fmt: skip
        document = {"driver": "550.54.15", "max_cuda": "12.4", "gpus": gpus}
        (self.folder / "gpus.json").write_text(json.dumps(document))
        devices = [
            {"name": uuid(number), "containerEdits": {"deviceNodes": [{"path": "/dev/null"}]}}
            for number in range(count if named is None else named)
        ]
        spec = {"cdiVersion": "0.5.0", "kind": cdi.KIND, "devices": devices}
        (self.specs / "fake.json").write_text(json.dumps(spec))
        configured(gpu_provider=str(self.folder / "gpus.json"))


def lease(number: int, workspace_id: str, mode: str = "exclusive") -> None:
    """Let a workspace hold a GPU."""
    database.execute_sql(
        "INSERT INTO gpu_leases (gpu, workspace_id, mode, taken_at) VALUES (?, ?, ?, ?)",
        (uuid(number), workspace_id, mode, now()),
    )
