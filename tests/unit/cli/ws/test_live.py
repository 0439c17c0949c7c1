"""`svc ws list --live`."""

from __future__ import annotations

from typing import Any

import pytest
from fake_service import Service, Svc

from svc.cli.ws import live

USE: dict[str, Any] = {
    "id": "ws-1", "at": "2025-01-02T03:04:05Z", "cpu_percent": 12.5, "memory_bytes": 1024,
    "gpu_percent": None, "gpu_memory_bytes": None,
    "launchers": [{"name": "lab", "state": "started"}, {"name": "web", "state": "exited"}],
}  # fmt: skip
LIST = "GET /api/workspaces?limit=200&status=running"


def test_live(service: Service, svc: Svc) -> None:
    service.answer("GET /api/usage/workspaces", {"items": [USE]})
    service.answer(LIST, {"items": [{"id": "ws-1", "name": "demo"}], "next_offset": None})
    assert svc("ws", "list", "--live") == (0, "ws-1\tdemo\t12.5\t1024\t\t\tlab\n", "")
    assert "12.5%" in svc("ws", "list", "--live", terminal=True).out
    assert '"cpu_percent": 12.5' in svc("ws", "list", "--live", "--json").out
    assert svc("ws", "list", "--live", "--owner", "bob").code == 2


def test_the_first_measurement_has_no_cpu(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "AGAIN_S", 0)
    service.answer("GET /api/usage/workspaces", {"items": [USE | {"cpu_percent": None}]}, {"items": [USE]})
    service.answer(LIST, {"items": [], "next_offset": None})
    assert svc("ws", "list", "--live").out == "ws-1\t\t12.5\t1024\t\t\tlab\n"
