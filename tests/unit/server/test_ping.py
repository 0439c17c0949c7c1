"""The supervisor's pings: a silent helper is noticed in time, an answering one never killed."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator

import pytest

from svc.server import ping
from svc.server.ping import CALL, SILENT_S, Ping
from svc_helper.wire.protocol import check_call, receive


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    created = Clock()
    monkeypatch.setattr(ping, "time", created)
    return created


@pytest.fixture
def pair(clock: Clock) -> Iterator[tuple[Ping, socket.socket]]:
    """A ping and the helper's end of its pair."""
    created = Ping()
    with socket.socket(fileno=os.dup(created.helper_end)) as helper, created.sock:
        yield created, helper
    os.close(created.helper_end)
    if created.reply is not None:
        created.reply.close()


def answer(helper: socket.socket, data: bytes = b'{"ok":true}') -> None:
    """Answer the pings that wait."""
    while True:
        try:
            frame = receive(helper, wait=False)
        except BlockingIOError:
            return
        with socket.socket(fileno=frame.fds[0]) as reply:
            if data:
                try:
                    reply.send(data)
                except BrokenPipeError:
                    pass  # one of before, whose reply nobody waits for


def test_the_call_is_one_that_the_helper_takes() -> None:
    assert check_call(json.loads(CALL), ping.PAIR).verb.name == "helper.ping"


def test_one_that_answers_is_never_late(pair: tuple[Ping, socket.socket], clock: Clock) -> None:
    watched, helper = pair
    for _ in range(100):
        clock.now += 1
        assert not watched.is_late(999.0)
        answer(helper)


@pytest.mark.parametrize("replies", ["none", "paths that end without one"])
def test_a_silent_one_is_late_within_ten_seconds(
    pair: tuple[Ping, socket.socket], clock: Clock, replies: str
) -> None:
    watched, helper = pair
    assert not watched.is_late(999.0)
    answer(helper)
    seconds = 0
    while not watched.is_late(999.0):
        seconds += 1
        clock.now += 1
        if replies != "none":
            answer(helper, b"")
    assert seconds <= SILENT_S + 2 < 10
    watched.expect_end(42)
    assert not watched.is_late(999.0)  # it has a moment to end
    clock.now += 2
    assert watched.is_late(999.0)
    assert not watched.is_late(clock.now - 1)  # another has started
    answer(helper)
    clock.now += 2
    assert not watched.is_late(clock.now - 3)


def test_a_silent_one_costs_no_descriptors_and_no_queue(
    pair: tuple[Ping, socket.socket], clock: Clock
) -> None:
    watched, _ = pair
    watched.is_late(999.0)
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(600):
        clock.now += 2
        watched.is_late(999.0)
    assert len(os.listdir("/proc/self/fd")) == before
