"""A viewer's end of a terminal: nothing waits, and what a hostile shim sends is its end."""

from __future__ import annotations

import socket

import pytest
from unit.serving import CONTAINER, FarEnd, make_workspace

from svc.domain.principal import Caller
from svc.domain.workspaces.live import terminals
from svc.domain.workspaces.live.attached import LOST
from svc_helper.wire import terminal_frames as frames


@pytest.fixture
def running(ada: Caller, template: str) -> str:
    return make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)


def test_a_terminal_that_takes_nothing_makes_nobody_wait(ada: Caller, far: FarEnd, running: str) -> None:
    with terminals.attached(ada, "lab", "t-4k2m9x", 80, 24) as viewer:
        taken = viewer.send(b"y" * 10_000_000)
        assert 0 < taken < 10_000_000
        assert viewer.send(b"y") == 0 and not viewer.resize(1, 1)
        while len(far.streams[0].recv(1 << 16, socket.MSG_DONTWAIT)) == frames.FRAME_MAX:
            if viewer.send(b"z") == 1:
                break
        far.streams[0].close()
        assert viewer.send(b"gone") == 4 and viewer.receive() == LOST


@pytest.mark.parametrize(
    "frame",
    [
        b"?", b"x", b"s", b"s{}", b"s[]", b's{"title":1,"cols":0,"rows":1}', b's{"cols":true,"rows":1}',
        b"k{}", b'k{"bytes":-1}', b"e{}", b'e{"reason":"bored","exit_code":1}',
        b'e{"reason":"exited","exit_code":1.5}',
        b"s" + b"[" * 4000, b"s" + b" " * 5000, b"o" + b"x" * (frames.DATA_MAX + 1), b"o" * 100_000, b"i",
    ],
)  # fmt: skip
def test_rubbish_of_the_shim_is_the_end(ada: Caller, far: FarEnd, running: str, frame: bytes) -> None:
    with terminals.attached(ada, "lab", "t-4k2m9x", 80, 24) as viewer:
        far.streams[0].send(frame)
        assert viewer.receive() == LOST
        assert viewer.receive() is None


def test_descriptors_of_the_shim_reach_nobody(ada: Caller, far: FarEnd, running: str) -> None:
    with terminals.attached(ada, "lab", "t-4k2m9x", 80, 24) as viewer, socket.socket() as other:
        try:
            socket.send_fds(far.streams[0], [frames.OUTPUT + b"x"], [other.fileno()] * 3)
        except PermissionError:  # a kernel with SO_PASSRIGHTS
            return
        assert viewer.receive() in (LOST, ("output", b"x"))
