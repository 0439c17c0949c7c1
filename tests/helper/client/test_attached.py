"""Calls that attach a viewer: the pair outlives the call, and a hostile end of it holds nobody."""

from __future__ import annotations

import os
import select
import socket
import threading
import time

import pytest
from helper.client.test_helper import Behaviour, answering
from helper.client.test_transfers import WAIT_S, splices

from svc import errors
from svc.helper.transfers import DataStream
from svc_helper.wire.protocol import Frame, receive, send

__all__ = ["splices"]
WS = {"id": "ws-0abc9xyz", "terminal": "t-4k2m9x", "cols": 80, "rows": 24}
OK = {"ok": True, "data": {"terminal": {}}}


def handing_on(ends: list[socket.socket], reply_with: dict[str, object] = OK, *fds: int) -> Behaviour:
    """An agent that keeps the viewer's end here, as if it were the shim's, and answers."""

    def behave(reply: socket.socket, _frame: Frame) -> None:
        value = receive(reply)
        assert value.message == {"output": True}
        ends.append(socket.socket(fileno=value.fds[0]))
        send(reply, reply_with, fds)

    return behave


def next_frame(stream: DataStream) -> bytes:
    """Wait for it."""
    end = time.monotonic() + WAIT_S
    while (frame := stream.receive(100_000)) is None:
        assert time.monotonic() < end
        select.select([stream], [], [], 1)
    return frame


def test_the_pair_outlives_the_call(splices: bool) -> None:
    ends: list[socket.socket] = []
    with answering(handing_on(ends)) as client:
        with client.attached("terminal.attach", "demo", WS, rid="r") as (data, stream):
            assert data == {"terminal": {}} and not client.calling["demo"] and not client.transfers
            [shim] = ends
            assert shim.type == socket.SOCK_SEQPACKET
            shim.send(b"one")
            shim.send(b"two")
            assert (next_frame(stream), next_frame(stream), stream.receive(9)) == (b"one", b"two", None)
            assert stream.send(memoryview(b"typed")) == 5
            assert shim.recv(100) == b"typed"
        assert shim.recv(100) == b"", "leaving closes it"
        shim.close()


def test_what_was_sent_before_a_reset_is_not_lost(splices: bool) -> None:
    ends: list[socket.socket] = []
    with (
        answering(handing_on(ends)) as client,
        client.attached("terminal.attach", "demo", WS, rid="r") as (_, stream),
    ):
        stream.send(memoryview(b"never read"))
        ends[0].send(b"the end")
        ends[0].close()
        assert next_frame(stream) == b"the end"
        assert next_frame(stream) == b""


def test_a_refusal_closes_the_pair() -> None:
    ends: list[socket.socket] = []
    refusal = {"ok": False, "code": "too_many", "message": "8 terminals are open"}
    with answering(handing_on(ends, refusal)) as client:
        with (
            pytest.raises(errors.TooManyTerminals, match="8 terminals"),
            client.attached("terminal.attach", "demo", WS, rid="r"),
        ):
            pass
        assert ends[0].recv(100) == b""
        ends[0].close()


def test_descriptors_from_the_other_end_block_nobody(splices: bool) -> None:
    ends: list[socket.socket] = []
    reading, writing = os.pipe()
    try:
        with answering(handing_on(ends, OK, reading)) as client:
            with client.attached("terminal.attach", "demo", WS, rid="r") as (_, stream):
                try:
                    for _ in range(20):
                        socket.send_fds(ends[0], [b"x"], [reading] * 200, socket.MSG_DONTWAIT)
                except (PermissionError, BlockingIOError):
                    ends[0].close()
                else:
                    with pytest.raises(errors.EngineFailed):
                        next_frame(stream)
            if len(ends) and ends[0].fileno() >= 0:
                ends[0].close()
            end = time.monotonic() + WAIT_S
            while client.closing["demo"]:
                assert time.monotonic() < end
                time.sleep(0.01)
    finally:
        os.close(reading)
        os.close(writing)


def test_one_that_reads_nothing_and_floods_stops_nobody() -> None:
    ends: list[socket.socket] = []
    stop = threading.Event()

    def flood() -> None:
        while not stop.is_set():
            try:
                ends[0].send(b"o" * 30_000)
            except OSError:
                return

    with answering(handing_on(ends)) as client:
        with client.attached("terminal.attach", "demo", WS, rid="r") as (_, stream):
            thread = threading.Thread(target=flood)
            thread.start()
            assert next_frame(stream)
            taken = 0
            while stream.send(memoryview(b"i" * 1000)):
                taken += 1
            assert taken < 10_000
        stop.set()
        thread.join(WAIT_S)
        assert not thread.is_alive()
        ends[0].close()
