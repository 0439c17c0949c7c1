"""`svc operation`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.cli import operation, waiting

WATCH = "GET /api/operations/op-1"
LOG = f"{WATCH}/log"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_FIRST_S", 0.01)
    monkeypatch.setattr(operation, "FOLLOW_S", 0.01)


def record(status: str = "running", **more: Any) -> dict[str, Any]:
    return {
        "id": "op-1",
        "kind": "pull",
        "status": status,
        "phase": "pulling",
        "progress": {"current": 1, "total": 4, "unit": "bytes"},
        "subject": {"type": "image", "id": "r/python", "name": "r/python"},
        "template": {"id": "tpl-1", "name": "python"},
        "created_at": "2025-01-02T03:04:05Z",
        **more,
    }


LINE = "op-1\tpull\trunning\tpulling\t25\tpython\t2025-01-02T03:04:05Z\t\tr/python\t\n"


def test_list(service: Service, svc: Svc) -> None:
    service.answer("GET /api/operations?limit=200", {"items": [record()]})
    assert svc("operation", "list") == (0, LINE, "")
    assert " 25% " in svc("operation", "ls", terminal=True).out


@pytest.mark.parametrize(
    ("options", "query"),
    [
        (["--open"], "&status=queued%2Crunning"),
        (["--status", "failed"], "&status=failed"),
        (["--kind", "build"], "&kind=build"),
        (["--subject", "r/python:1"], "&subject=r%2Fpython%3A1"),
    ],
)
def test_list_is_filtered(service: Service, svc: Svc, options: list[str], query: str) -> None:
    service.answer(f"GET /api/operations?limit=200{query}", {"items": []})
    assert svc("operation", "list", *options) == (0, "", "")


@pytest.mark.parametrize("progress", [None, {}, {"current": 5, "total": 0}, {"current": 9, "total": 4}, 7])
def test_odd_progress_is_no_percentage(service: Service, svc: Svc, progress: object) -> None:
    service.answer("GET /api/operations?limit=200", {"items": [record(progress=progress)]})
    assert svc("operation", "list").out == LINE.replace("25", "", 1)[: len(LINE)].replace("2025", "2025")


def test_watch(service: Service, svc: Svc) -> None:
    service.answer(WATCH, record(), record("succeeded"))
    done = svc("operation", "watch", "op-1", terminal=True)
    assert (done.code, done.out) == (0, "The pull of r/python has succeeded.\n")
    assert "pulling  [######" in done.err
    service.answer(WATCH, record("succeeded"))
    assert json.loads(svc("operation", "watch", "op-1", "--json").out) == {"operation": record("succeeded")}


def test_watch_fails_as_the_operation_did(service: Service, svc: Svc) -> None:
    error = {"code": "engine_failed", "message": "no such image", "hint": "svc template get python"}
    service.answer(WATCH, record("failed", error=error))
    hinted = "svc: no such image\nhint: svc template get python\n"
    assert svc("operation", "watch", "op-1") == (1, "", hinted)
    service.refuse(WATCH, 404, "not_found", "there is no operation op-1")
    assert svc("operation", "watch", "op-1").err == "svc: no such image\nhint: svc template get python\n"
    assert svc("operation", "watch", "op-1").err == "svc: there is no operation op-1\n"


def test_cancel(service: Service, svc: Svc) -> None:
    service.answer("POST /api/operations/op-1/cancel", record(), record("cancelled"))
    assert "svc operation watch op-1" in svc("operation", "cancel", "op-1", terminal=True).out
    assert svc("operation", "cancel", "op-1", terminal=True).out == "op-1 is cancelled.\n"


def lines(*texts: str, first: int = 1) -> list[dict[str, Any]]:
    return [{"line": number, "at": "", "text": text} for number, text in enumerate(texts, first)]


def test_log(service: Service, svc: Svc) -> None:
    service.answer(LOG, {"lines": lines("one", "\x1b[2Jtwo"), "next": 2, "ended": False})
    assert svc("operation", "log", "op-1") == (0, "one\n\\x1b[2Jtwo\n", "")
    service.answer(f"{LOG}?after=1", {"lines": lines("two", first=2), "next": 2, "ended": True})
    assert svc("operation", "log", "op-1", "--after", "1").out == "two\n"


def test_log_follows_to_the_end(service: Service, svc: Svc) -> None:
    service.answer(LOG, {"lines": lines("one"), "next": 1, "ended": False})
    service.answer(
        f"{LOG}?after=1",
        {"lines": [], "next": 1, "ended": False},
        {"lines": lines("two", first=2), "next": 2, "ended": True},
    )
    assert svc("operation", "log", "op-1", "--follow") == (0, "one\ntwo\n", "")


@pytest.mark.parametrize(
    "body", [{}, {"lines": 5, "next": 1}, {"lines": [], "next": "x"}, {"lines": [], "next": True}]
)
def test_an_odd_log_is_refused(service: Service, svc: Svc, body: object) -> None:
    service.answer(LOG, body)
    assert svc("operation", "log", "op-1", "--follow").code == 1
