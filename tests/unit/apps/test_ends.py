"""One end of a connection: what has gone is noticed once, and costs nothing after it."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from svc.apps.ends import End
from svc_helper.shim.loop import Loop


class Watched(End):
    """Counts how often the loop calls it."""

    calls = 0

    def _ready(self, events: int) -> None:
        self.calls += 1
        super()._ready(events)


class Side:
    """An end on a loop, and the socket that leads to it."""

    def __init__(self, *, receives_rest: bool) -> None:
        self.loop = Loop()
        self.other, sock = socket.socketpair()
        self.got: list[bytes] = []
        self.losses = 0
        self.end = Watched(self.loop, sock, self.got.append, receives_rest=receives_rest)
        self.end.lost = self._lost

    def _lost(self) -> None:
        self.losses += 1

    def turn(self, times: int = 20) -> None:
        """Turn the loop, which waits when there is nothing to do."""
        for _ in range(times):
            self.loop.turn(0.005)

    def close(self) -> None:
        self.end.close()
        self.other.close()
        self.loop.close()


@pytest.fixture(params=[False, True], ids=["browser", "program"])
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """Of a browser, or of a program, whose rest is received."""
    made = Side(receives_rest=request.param)
    yield made
    made.close()


def test_one_that_has_gone_does_not_keep_the_loop_busy(side: Side) -> None:
    """After both directions have ended, in any order: the kernel says so without end."""
    side.other.shutdown(socket.SHUT_WR)
    side.turn()
    assert side.got == [b""]
    side.end.finish()
    side.other.close()
    side.turn(100)
    assert side.end.calls < 10
    assert side.losses == (0 if side.end.receives_rest else 1)


def test_what_a_program_sent_before_it_went_is_received_later(side: Side) -> None:
    side.end.read(False)
    side.turn(1)
    side.other.sendall(b"last words")
    side.other.close()
    side.turn(100)
    assert side.end.calls < 10
    if side.end.receives_rest:
        side.end.read(True)
        side.turn()
        assert side.got == [b"last words", b""]
    assert side.losses == (0 if side.end.receives_rest else 1)
