"""A viewer of a terminal over a WebSocket: what is said, what is refused, who waits for whom, how it ends."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from unit.serving import CONTAINER, TERMINAL, FarEnd, caller_of, make_template, make_workspace
from unit.streaming import start, until

from svc import errors, websocket
from svc.domain.workspaces.live import terminals
from svc.web.streaming import loop as loops
from svc.web.streaming import websocket as websockets
from svc.web.streaming.terminal import TerminalStream
from svc.websocket import BINARY, CLOSE, PING, PONG, TEXT, Receiver, frame
from svc_helper.wire import terminal_frames as frames


class Page:
    """A client of the stream, and the shim at its other end."""

    def __init__(self, stream: TerminalStream, shim: socket.socket) -> None:
        self.stream, self.shim = stream, shim
        self.sock, self.over = start(stream, head=b"")
        self.receiver = Receiver(1 << 20, masked=False)
        self.messages: list[tuple[int, bytes]] = []
        shim.settimeout(20)

    def send(self, kind: int, content: bytes) -> None:
        self.sock.sendall(frame(kind, content, mask=True))

    def next(self) -> tuple[int, bytes]:
        while not self.messages:
            data = self.sock.recv(65536)
            assert data, "the connection has ended"
            self.messages += self.receiver.feed(data)
        return self.messages.pop(0)

    def told(self, kind: str) -> dict[str, Any]:
        """The next message, which is this text."""
        found, content = self.next()
        assert found == TEXT, content
        message = json.loads(content)
        assert message.pop("type") == kind
        return dict(message)

    def closed(self) -> int:
        """The code of the close frame, which comes next; then the connection ends."""
        kind, content = self.next()
        assert kind == CLOSE, (kind, content)
        assert self.sock.recv(1) == b""
        self.sock.close()
        assert self.over.wait(20)
        return websocket.close_code(content)


@pytest.fixture
def page(
    people: Any, listeners: Any, loop: loops.Loop, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Page]]:
    """page() -> a page attached to ada's terminal."""
    make_workspace(
        people["ada"].id, make_template(people["ada"].id), status="running", container_id=CONTAINER
    )
    far: FarEnd = listeners.far
    monkeypatch.setattr("svc.web.streaming.stream.default_loop", loop)
    pages: list[Page] = []

    def create(require: Callable[[], object] = lambda: None) -> Page:
        held = ExitStack()
        caller = caller_of(people["ada"], far)
        attached = held.enter_context(terminals.attached(caller, "lab", "t-4k2m9x", 80, 24))
        pages.append(Page(TerminalStream(caller, require, attached, held), far.streams[-1]))
        assert pages[-1].told("attached")["terminal"]["id"] == TERMINAL["id"]
        return pages[-1]

    yield create
    for each in pages:
        each.sock.close()
        assert each.over.wait(20)


def test_bytes_and_facts_both_ways(page: Callable[..., Page]) -> None:
    one = page()
    one.shim.send(frames.facts(frames.STATE, {"title": "top", "cols": 80, "rows": 24}))
    assert one.told("state") == {"title": "top", "cols": 80, "rows": 24}
    one.shim.send(frames.OUTPUT + b"\xff\x00out")
    assert one.next() == (BINARY, b"\xff\x00out")
    one.send(BINARY, b"typed\x03")
    assert one.shim.recv(100) == frames.INPUT + b"typed\x03"
    one.send(TEXT, b'{"type": "resize", "cols": 120, "rows": 40}')
    assert json.loads(one.shim.recv(100)[1:]) == {"cols": 120, "rows": 40}
    one.shim.send(frames.facts(frames.SKIPPED, {"bytes": 5}))
    assert one.told("skipped") == {"bytes": 5}


def test_pings_and_a_goodbye(page: Callable[..., Page]) -> None:
    one = page()
    one.send(PING, b"there?")
    assert one.next() == (PONG, b"there?")
    one.send(CLOSE, websocket.closing(1001, "going"))
    assert one.closed() == 1001
    with pytest.raises(BrokenPipeError):  # the viewer has left the shim too
        until(lambda: one.shim.send(frames.OUTPUT + b"x") < 0)


@pytest.mark.parametrize(
    ("reason", "code", "closed"), [("exited", 7, 4000), ("closed", None, 4001), ("stopped", None, 4001)]
)
def test_the_end_of_the_terminal(
    page: Callable[..., Page], reason: str, code: int | None, closed: int
) -> None:
    one = page()
    one.shim.send(frames.OUTPUT + b"bye")
    one.shim.send(frames.facts(frames.END, {"reason": reason, "exit_code": code}))
    assert one.next() == (BINARY, b"bye")
    assert one.told("exit") == {"reason": reason, "exit_code": code}
    assert one.closed() == closed


def test_a_shim_that_is_killed(page: Callable[..., Page]) -> None:
    one = page()
    one.shim.close()
    assert one.told("exit")["reason"] == "lost"
    assert one.closed() == 4001


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, b"unmasked"), 1002),
        (b"\xc2\x80\x00\x00\x00\x00", 1002),
        (frame(BINARY, bytes(65537), mask=True), 1009),
        (b"\x02\xfe\xff\xff\x00\x00\x00\x00" + bytes(65535) + frame(0, b"xx", mask=True), 1009),
        (frame(TEXT, b"\xff", mask=True), 1007),
        (frame(TEXT, b"[]", mask=True), 4400),
        (frame(TEXT, b"not JSON", mask=True), 4400),
        (frame(TEXT, b"[" * 60000, mask=True), 4400),
        (frame(TEXT, b'{"type": "resize"}', mask=True), 4400),
        (frame(TEXT, b'{"type": "resize", "cols": 0, "rows": 1}', mask=True), 4400),
        (frame(TEXT, b'{"type": "resize", "cols": true, "rows": 1}', mask=True), 4400),
        (frame(TEXT, b'{"type": "resize", "cols": 1, "rows": 1001}', mask=True), 4400),
        (frame(TEXT, b'{"type": "resize", "cols": 1, "rows": 1, "x": 1}', mask=True), 4400),
        (frame(TEXT, b'{"type": "exit", "cols": 1, "rows": 1}', mask=True), 4400),
    ],
    ids=map(str, range(14)),  # masks are random
)  # fmt: skip
def test_what_ends_the_connection(page: Callable[..., Page], data: bytes, code: int) -> None:
    one = page()
    threading.Thread(target=lambda: one.sock.sendall(data), daemon=True).start()
    assert one.closed() == code


def test_fragments(page: Callable[..., Page]) -> None:
    one = page()
    parts = bytearray(frame(BINARY, b"he", mask=True)), bytearray(frame(0, b"l", mask=True))
    for part in parts:
        part[0] &= 0x7F
    one.sock.sendall(b"".join(parts) + frame(PING, b"", mask=True) + frame(0, b"lo", mask=True))
    assert one.next() == (PONG, b"")
    assert one.shim.recv(100) == frames.INPUT + b"hello"


def test_a_terminal_that_takes_nothing_makes_its_client_wait(page: Callable[..., Page]) -> None:
    """Nothing is lost, nothing piles up: the client's own connection fills."""
    one = page()
    content = bytes(range(256)) * 128
    sent = 64

    def send() -> None:
        for _ in range(sent):
            one.send(BINARY, content)

    sender = threading.Thread(target=send, daemon=True)
    sender.start()
    until(lambda: not one.stream.is_reading)
    assert len(one.stream.typed) <= 2 * websockets.MESSAGE_MAX
    received = b""
    while len(received) < sent * len(content):
        received += one.shim.recv(1 << 16)[1:]
    assert received == content * sent
    sender.join(20)
    until(lambda: one.stream.is_reading)


def test_a_client_that_reads_nothing_makes_the_terminal_wait(page: Callable[..., Page]) -> None:
    """The shim notes that this viewer does not keep up; memory here is bounded."""
    one = page()
    one.shim.setblocking(False)
    sent = 0
    with pytest.raises(BlockingIOError):
        while sent < 10_000:
            one.shim.send(frames.OUTPUT + bytes(32 * 1024))
            sent += 1
    assert len(one.stream.output) <= 2 * 32 * 1024 + 100
    got = 0
    while got < sent:
        kind, content = one.next()
        got += kind == BINARY and len(content) == 32 * 1024


def test_a_flood_of_sizes(page: Callable[..., Page]) -> None:
    """The last one counts."""
    one = page()
    for number in range(1, 1001):
        one.send(TEXT, json.dumps({"type": "resize", "cols": number, "rows": 1}).encode())
    size = {}
    while size.get("cols") != 1000:
        size = json.loads(one.shim.recv(100)[1:])


def test_a_restart_brings_the_client_back(page: Callable[..., Page]) -> None:
    one = page()
    one.stream.post(one.stream.stop)
    assert one.closed() == 1012


def test_access_that_is_lost(page: Callable[..., Page]) -> None:
    one = page()
    one.stream.post(lambda: one.stream.refused(errors.AccountDisabled("disabled")))
    assert one.closed() == 4003


def test_a_client_that_is_silent(page: Callable[..., Page], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(websockets, "PING_S", 0.01)
    one = page()
    one.stream.post(one.stream._ping)
    assert one.next() == (PING, b"")
    monkeypatch.setattr(websockets, "SILENCE_S", -1.0)
    assert one.over.wait(20)


# --- floods: the loop serves the streams of all users -------------------------------------------


@pytest.mark.parametrize(
    "piece",
    [frame(PING, b"", mask=True), frame(BINARY, b"", mask=True), b"\x00\x80\x00\x00\x00\x00"],
    ids=["pings", "empty messages", "empty fragments"],
)
def test_a_flood_of_frames_is_taken_in_parts(page: Callable[..., Page], piece: bytes) -> None:
    """Nothing is lost of it, and everybody else has a turn in between."""
    one = page()
    taken = [0]  # frames by turn of the loop
    complete = one.stream.receiver._completed

    def count(*found: Any) -> Any:
        taken[-1] += 1
        return complete(*found)

    def turn() -> None:
        taken.append(0)
        one.stream.post(turn)

    one.stream.receiver._completed = count  # type: ignore[method-assign]  # to count what is handled
    one.stream.post(turn)
    begin = b"\x01\x80\x00\x00\x00\x00" if piece[0] == 0 else b""
    sender = threading.Thread(target=one.sock.sendall, args=(begin + 3000 * piece,))
    sender.start()
    if piece[0] == 0x89:
        for _ in range(3000):
            assert one.next() == (PONG, b"")
    sender.join(20)
    until(lambda: sum(taken) == 3000 + bool(begin))
    assert max(taken) <= 2 * websockets.FRAMES_AT_ONCE  # the last of one read, the first of the next
    assert not one.stream.is_unfinished
