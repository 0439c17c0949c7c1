"""`svc events`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

from svc.cli import events

LIST = "GET /api/events/history?limit=200"
STREAM = "GET /api/events"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "PAUSE_S", 0.01)


def record(number: int, **more: Any) -> dict[str, Any]:
    return {
        "id": number, "ts": "2025-01-02T03:04:05Z", "type": "workspace.status_changed", "owner": "ada",
        "actor": {"user": "ada", "via": "socket"},
        "subject": {"type": "workspace", "id": "ws-1", "name": "demo"}, "reason": "user_requested",
        "data": {"from": "running", "to": "stopped"}, **more,
    }  # fmt: skip


def line(number: int) -> str:
    return f"{number}\t2025-01-02T03:04:05Z\tworkspace.status_changed\tdemo\tuser_requested\tada\tstopped\n"


def block(number: int) -> bytes:
    return f"id: {number}\nevent: workspace.status_changed\ndata: {json.dumps(record(number))}\n\n".encode()


def chunked(*parts: bytes, whole: bool = True) -> bytes:
    body = b"".join(b"%X\r\n%b\r\n" % (len(part), part) for part in parts)
    return HEAD + body + (b"0\r\n\r\n" if whole else b"")


RESTARTING = b"retry: 10\nevent: restarting\ndata: {}\n\n"
ERROR = b'event: error\ndata: {"error": {"code": "account_disabled", "message": "it is disabled"}}\n\n'


def test_list(service: Service, svc: Svc) -> None:
    shared = record(2, subject={"type": "host", "id": "", "name": ""}, reason=None, actor={"user": None})
    service.answer(LIST, {"items": [record(3), shared], "total": 2})
    out = f"{line(3)}2\t2025-01-02T03:04:05Z\tworkspace.status_changed\thost\t\t\tstopped\n"
    assert svc("events") == (0, out, "")
    service.answer(
        f"{LIST}&type=a.b,c.d".replace(",", "%2C") + "&after=7&all=true", {"items": [], "total": 300}
    )
    done = svc("events", "--type", "a.b,c.d", "--after", "7", "--all", terminal=True)
    assert (done.code, done.out) == (0, "No events.\n")
    assert "100 older events" in done.err
    service.answer(LIST, {"items": [], "total": 0})
    assert json.loads(svc("events", "--json").out)["total"] == 2


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("workspace.status_changed", {"from": "starting", "to": "running"}, "workspace  demo  running"),
        ("workspace.status_changed", {"to": "failed", "exit_code": 137}, "workspace  demo  failed (137)"),
        ("workspace.created", {"status": "stopped"}, "workspace  demo  created"),
        ("launcher.status_changed", {"state": "exited", "exit_code": 0}, "launcher  demo  exited"),
        ("operation.finished", {"kind": "pull", "status": "succeeded"}, "operation  demo  pull succeeded"),
        ("operation.progress", {"kind": "build", "status": "running", "phase": "building"},
         "operation  demo  build building"),
        ("template.enabled", {"status": "enabled"}, "template  demo  enabled"),
        ("workspace.status_changed", None, "workspace  demo  status changed"),
        ("capacity.changed", {}, "capacity  demo  changed"),
    ],
)  # fmt: skip
def test_what_it_became(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch, kind: str, data: Any, told: str
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    service.answer(LIST, {"items": [record(7, type=kind, data=data)], "total": 1})
    heading, row = svc("events", terminal=True).out.splitlines()
    assert heading.split() == ["TIME", "OF", "NAME", "NOW", "REASON", "BY", "ID"]
    assert f"  {told}  " in row and row.endswith("  7")
    assert svc("events").out.split("\t")[6] == told.split("  ")[2] + "\n"
    block_ = f"id: 7\nevent: {kind}\ndata: {json.dumps(record(7, type=kind, data=data))}\n\n".encode()
    service.raw(STREAM, chunked(block_, ERROR))
    assert f"  {told}  " in svc("events", "--follow", terminal=True).out


def test_the_newest_of_them(service: Service, svc: Svc) -> None:
    newest = "GET /api/events/history?limit=2"
    service.answer(newest, {"items": [record(9), record(7)], "total": 300})
    assert svc("events", "-n", "2") == (0, line(9) + line(7), "")
    service.raw(f"{STREAM}?after=6", chunked(block(7), block(9), ERROR))
    assert svc("events", "-f", "-n", "2").out == line(7) + line(9)


def test_without_any_the_newest_are_those_to_come(service: Service, svc: Svc) -> None:
    service.answer("GET /api/events/history?limit=2", {"items": [], "total": 0})
    service.raw(STREAM, chunked(block(12), ERROR))
    assert svc("events", "--follow", "--tail", "2").out == line(12)


def test_follow_comes_back_where_it_was(service: Service, svc: Svc) -> None:
    service.raw(STREAM, chunked(b"retry: 5\n\n", b"id: 7\n\n", block(8), RESTARTING))
    service.raw(f"{STREAM}?after=8", chunked(b": still here\nid: 9\n\n", block(10), whole=False))
    gap = b'id: 20\nevent: gap\ndata: {"after": 10, "next": 21}\n\n'
    service.raw(f"{STREAM}?after=10", chunked(gap, block(21), ERROR))
    done = svc("events", "--follow")
    assert (done.code, done.out) == (1, line(8) + line(10) + line(21))
    assert "no longer kept" in done.err
    assert done.err.endswith("svc: it is disabled\n")


def test_follow_comes_back_after_a_long_quiet_time(
    service: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Patience begins where the stream broke, not with the last event."""
    monkeypatch.setattr(events, "PATIENCE_S", -1.0)  # as if it had been quiet for longer
    service.raw(STREAM, chunked(b"id: 7\n\n", b": still here\n\n", whole=False))
    service.raw(f"{STREAM}?after=7", chunked(b": still here\n\n", block(8), ERROR))
    done = svc("events", "--follow")
    assert (done.code, done.out, done.err) == (1, line(8), "svc: it is disabled\n")


def test_follow_as_json_lines(service: Service, svc: Svc) -> None:
    service.raw(f"{STREAM}?type=a.b&after=0", chunked(block(1), block(2), ERROR))
    done = svc("events", "--follow", "--json", "--type", "a.b", "--after", "0")
    assert [json.loads(each)["id"] for each in done.out.splitlines()] == [1, 2]


def test_a_first_connection_that_fails_is_an_error(service: Service, svc: Svc) -> None:
    service.refuse(STREAM, 429, "too_many_requests", "too many streams")
    assert svc("events", "--follow") == (1, "", "svc: too many streams\n")
    service.raw(f"{STREAM}?after=1", b"\x1b[2J")
    done = svc("events", "--follow", "--after", "1")
    assert (done.code, done.out) == (1, "")
    assert "\x1b" not in done.err


def test_follow_on_a_terminal_escapes(service: Service, svc: Svc) -> None:
    bad = json.dumps(record(1, reason="\x1b[2J")).encode()
    service.raw(STREAM, chunked(b"id: 1\nevent: x\ndata: " + bad + b"\n\n", ERROR))
    assert "\x1b" not in svc("events", "--follow", terminal=True).out
