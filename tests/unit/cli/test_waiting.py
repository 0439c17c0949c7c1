"""Waiting for an operation: progress, interruptions, a service that restarts."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from fake_service import Service, Stream, Svc

from svc.cli import waiting

PULL = "POST /api/templates/python/image/pull"
WATCH = "GET /api/operations/op-1"
LINE = ["image", "pull", "python", "--wait"]


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "POLL_FIRST_S", 0.01)
    monkeypatch.setattr(waiting, "POLL_LAST_S", 0.01)


@pytest.fixture
def pulling(service: Service) -> Service:
    """A service whose pull has begun."""
    service.answer(PULL, {"operation": {"id": "op-1", "kind": "pull", "status": "queued"}}, status=202)
    service.answer("GET /api/templates/python/image", {"ref": "r/python", "status": "ready"})
    return service


def state(status: str = "running", **progress: Any) -> dict[str, Any]:
    return {"id": "op-1", "status": status, "phase": "pulling", "progress": progress}


def test_a_bar_on_a_terminal(pulling: Service, svc: Svc) -> None:
    half = state(current=512, total=1024, unit="bytes", text="layer 1 of 2")
    pulling.answer(WATCH, half, state("succeeded"))
    done = svc(*LINE, terminal=True)
    assert "pulling  [############            ]   50%  512 B of 1.0 KiB  layer 1 of 2" in done.err
    assert done.err.endswith("\r\x1b[K")  # the bar is gone before the outcome comes
    assert done.out == "The image r/python is ready.\n"


def test_lines_in_a_pipe(pulling: Service, svc: Svc) -> None:
    pulling.answer(
        WATCH, state(current=1, total=4), state(current=2, total=4), {**state(), "phase": "creating"}
    )
    pulling.answer(WATCH, state("succeeded"))
    done = svc(*LINE)
    assert done.err == "pulling   25%\ncreating\n"


@pytest.mark.parametrize(
    "progress",
    [
        {},
        None,
        5,
        {"current": -1, "total": "x"},
        {"current": 10**400, "total": 1},
        {"current": 5, "total": 0},
    ],
)
def test_odd_progress(pulling: Service, svc: Svc, progress: object) -> None:
    pulling.answer(WATCH, state() | {"progress": progress}, state("succeeded"))
    assert svc(*LINE, terminal=True).code == 0


def test_progress_steers_no_terminal(pulling: Service, svc: Svc) -> None:
    pulling.answer(WATCH, {**state(text="\x1b[2J"), "phase": "\x1b]0;x\x07"}, state("succeeded"))
    err = svc(*LINE, terminal=True).err
    assert "\\x1b[2J" in err
    assert "\x1b[2J" not in err


def test_waiting_outlives_a_restart_of_the_service(pulling: Service, svc: Svc) -> None:
    def die(connection: socket.socket) -> None:
        connection.shutdown(socket.SHUT_RDWR)

    pulling.answer(WATCH, state())
    pulling.raw(WATCH, die)
    pulling.refuse(WATCH, 503, "engine_unavailable", "not yet")
    pulling.answer(WATCH, state("succeeded"))
    assert svc(*LINE).code == 0


def chunk(content: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(content), content)


@pytest.fixture
def streams(pulling: Service) -> Iterator[list[socket.socket]]:
    """The service's ends of the event streams that clients have opened, the newest last."""
    opened: list[socket.socket] = []

    def begin(connection: socket.socket) -> None:
        opened.append(connection.dup())
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk(b"id: 5\n\n"))

    pulling.raw(f"GET {waiting.EVENTS}", begin)
    yield opened
    for connection in opened:
        connection.close()


def test_an_event_ends_the_pause(
    pulling: Service, svc: Svc, streams: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "EACH_S", 3600.0)

    def change(connection: socket.socket) -> None:
        content = json.dumps(state()).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))
        streams[-1].sendall(chunk(b"event: operation.finished\ndata: {}\n\n"))

    pulling.answer(WATCH, state())
    pulling.raw(WATCH, change)
    pulling.answer(WATCH, state("succeeded"))
    assert svc(*LINE).code == 0
    assert pulling.sent.count(WATCH) == 3
    assert len(streams) == 1


def test_a_look_beside_the_events(
    pulling: Service, svc: Svc, streams: list[socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a build prints has none of its own."""
    monkeypatch.setattr(waiting, "EACH_S", 0.01)
    pulling.answer(WATCH, state(), state(), state(), state("succeeded"))
    assert svc(*LINE).code == 0
    assert len(streams) == 1


def test_events_that_end_are_begun_again(pulling: Service, svc: Svc, streams: list[socket.socket]) -> None:
    def end(connection: socket.socket) -> None:
        content = json.dumps(state()).encode()
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))
        streams[-1].shutdown(socket.SHUT_RDWR)

    pulling.answer(WATCH, state())
    pulling.raw(WATCH, end, end)
    pulling.answer(WATCH, state("succeeded"))
    assert svc(*LINE).code == 0
    assert len(streams) == 2


def test_patience_has_an_end(pulling: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "PATIENCE_S", 0.1)
    pulling.refuse(WATCH, 503, "maintenance", "being upgraded")
    assert svc(*LINE) == (1, "", "svc: being upgraded\n")


def test_any_other_refusal_ends_the_waiting(pulling: Service, svc: Svc) -> None:
    pulling.refuse(WATCH, 404, "not_found", "no such operation")
    assert svc(*LINE) == (1, "", "svc: no such operation\n")


def test_cancelled_is_a_failure(pulling: Service, svc: Svc) -> None:
    pulling.answer(WATCH, state("cancelled"))
    assert svc(*LINE) == (1, "", "svc: operation op-1 was cancelled\n")


@pytest.mark.parametrize("body", [{}, {"operation": None}, {"operation": {"id": ""}}])
def test_an_answer_without_operation(service: Service, svc: Svc, body: object) -> None:
    service.answer(PULL, body, status=202)
    assert svc(*LINE).code == 1


def test_ctrl_c_ends_the_waiting_only(pulling: Service, svc: Svc, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(seconds: float) -> None:
        raise KeyboardInterrupt

    pulling.answer(WATCH, state())
    monkeypatch.setattr(waiting.time, "sleep", interrupt)
    done = svc(*LINE)
    assert done.code == 130
    assert "operation op-1 continues" in done.err
    assert "hint: svc operation watch op-1" in done.err
    assert not [line for line in pulling.sent if "cancel" in line]


def test_the_service_says_how_long_it_takes(pulling: Service, svc: Svc) -> None:
    amounts = {"current": 1024, "total": 10 * 1024, "unit": "bytes"}
    pulling.answer(
        WATCH,
        state(**amounts, rate=512, seconds_left=18),
        state(**amounts, rate=512, seconds_left=None) | {"phase": "slow"},
        state(**amounts, rate=0, seconds_left=None) | {"phase": "stalled"},
        state("succeeded"),
    )
    done = svc(*LINE)
    assert done.err == (
        "pulling   10%  1.0 KiB of 10.0 KiB  512 B/s  18 s left\n"
        "slow   10%  1.0 KiB of 10.0 KiB  512 B/s\n"
        "stalled   10%  1.0 KiB of 10.0 KiB\n"
    )


def test_the_rate_is_told_after_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(waiting.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", Stream(terminal=True))
    progress = waiting.Progress()
    progress.show(state(current=0, total=4096, unit="bytes"))
    clock[0] += 2
    line = progress._line(state(), 2048, 4096, 2)
    assert "KiB/s" not in line  # the unit is not bytes
    assert "1.0 KiB/s" in progress._line(state(unit="bytes"), 2048, 4096, 2)
