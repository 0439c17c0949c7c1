"""`svc ws shell`: what it lists, and what it refuses."""

from __future__ import annotations

import pytest
from fake_service import Service, Svc

TERMINALS = "GET /api/workspaces/demo/terminals"
RECORD = {
    "id": "t-4k2m9x", "title": "vim", "command": ["sh", "-c", "top"], "cols": 80, "rows": 24, "viewers": 1,
    "state": "running", "exit_code": None, "opened_at": "2025-01-02T03:04:05.000Z",
    "active_at": "2025-01-02T03:04:05.000Z",
}  # fmt: skip


def test_the_list(service: Service, svc: Svc) -> None:
    service.answer(TERMINALS, {"items": [RECORD], "max": 8})
    row = svc("ws", "shell", "demo", "--list").out.rstrip("\n").split("\t")
    assert row[:5] == ["t-4k2m9x", "running", "sh, -c, top", "vim", "1"]
    assert '"max": 8' in svc("ws", "shell", "demo", "--list", "--json").out


def test_an_empty_list(service: Service, svc: Svc) -> None:
    service.answer(TERMINALS, {"items": [], "max": 8})
    assert "svc ws shell demo" in svc("ws", "shell", "demo", "--list", terminal=True).out


def test_closing_one(service: Service, svc: Svc) -> None:
    service.answer("DELETE /api/workspaces/demo/terminals/t-4k2m9x", None, status=204)
    assert svc("ws", "shell", "demo", "--close", "t-4k2m9x") == (0, "", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("demo", "is not a terminal"),
        ("demo --json", "--json is for --list"),
        ("demo --attach t-1 --command top", "--attach returns to one that exists"),
        ("demo --detach-keys hyper-x", "is no key"),
        ("demo --attach a/b", "is not an id or name"),
        ("", "WORKSPACE"),
    ],
)
def test_what_it_refuses(svc: Svc, line: str, said: str) -> None:
    outcome = svc("ws", "shell", *line.split())
    assert (outcome.code, outcome.out) == (2, "")
    assert said in outcome.err
