"""A command with a standard input over a WebSocket: both ways at once, byte for byte, and every end."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, caller_of, make_template, make_workspace
from unit.streaming import until

from svc import errors, websocket
from svc.domain.places import long_calls
from svc.web import piping, rechecks
from svc.websocket import BINARY, CLOSE, PING, PONG, TEXT, Receiver, frame
from svc_helper.wire import terminal_frames as frames

START = {"type": "start", "command": ["cat"], "timeout_s": 5}


class Client:
    """The client's end, and the agent's."""

    def __init__(self, people: Any, far: FarEnd, who: str, require: Callable[[], object]) -> None:
        self.far = far
        self.sock, theirs = socket.socketpair()
        self.sock.settimeout(20)
        theirs.setblocking(False)
        self.theirs = theirs.fileno()
        self.receiver = Receiver(1 << 20, masked=False)
        self.messages: list[tuple[int, bytes]] = []
        self.ending = threading.Event()
        self.number = len(far.streams)
        far.answers["ctr.pipe"] = self._answer
        caller = caller_of(people[who], far, hangup_fd=theirs.fileno())

        def serve() -> None:
            with theirs:
                piping.serve(caller, "lab", require, theirs, b"")

        self.thread = threading.Thread(target=serve)
        self.thread.start()

    def _answer(self, _call: Any) -> dict[str, Any]:
        self.ending.wait(30)
        self.far.streams[self.number].close()
        return {"exit_code": 3, "timed_out": False, "duration_ms": 7}

    def send(self, content: bytes | dict[str, Any]) -> None:
        kind, data = (BINARY, content) if isinstance(content, bytes) else (TEXT, json.dumps(content).encode())
        self.sock.sendall(frame(kind, data, mask=True))

    def agent(self) -> socket.socket:
        """The agent's end of the running command."""
        until(lambda: len(self.far.streams) > self.number)
        self.far.streams[self.number].settimeout(20)
        return self.far.streams[self.number]

    def next(self) -> tuple[int, bytes]:
        while not self.messages:
            data = self.sock.recv(65536)
            assert data, "the connection has ended"
            self.messages += self.receiver.feed(data)
        return self.messages.pop(0)

    def told(self) -> dict[str, Any]:
        kind, content = self.next()
        assert kind == TEXT, (kind, content)
        return dict(json.loads(content))

    def closed(self) -> int:
        kind, content = self.next()
        assert kind == CLOSE, (kind, content)
        return websocket.close_code(content)

    def end(self) -> None:
        """Both sides are gone, and nothing is left."""
        self.ending.set()
        self.sock.close()
        self.thread.join(30)
        assert not self.thread.is_alive()
        assert long_calls.taken() == 0


@pytest.fixture
def client(people: Any, listeners: Any) -> Iterator[Callable[..., Client]]:
    """client(who="ada", require=...) -> a client who has not said anything yet."""
    template = make_template(people["ada"].id)
    make_workspace(people["ada"].id, template, status="running", container_id=CONTAINER)
    clients: list[Client] = []

    def create(who: str = "ada", require: Callable[[], object] = lambda: None) -> Client:
        clients.append(Client(people, listeners.far, who, require))
        return clients[-1]

    yield create
    for each in clients:
        each.end()


def test_both_ways_and_the_exit_code(client: Callable[..., Client]) -> None:
    one = client()
    one.send(START)
    one.send(b"\x00\xffin")
    one.sock.sendall(frame(PING, b"?", mask=True))
    agent = one.agent()
    assert agent.recv(100) == frames.INPUT + b"\x00\xffin"
    assert one.next() == (PONG, b"?")
    agent.send(frames.OUTPUT + b"\x00out")
    agent.send(frames.ERRORS + b"err\xff")
    assert [one.next(), one.next()] == [(BINARY, b"\x01\x00out"), (BINARY, b"\x02err\xff")]
    one.send({"type": "eof"})
    assert agent.recv(100) == frames.INPUT_END
    one.ending.set()
    assert one.told() == {"type": "exit", "exit_code": 3, "timed_out": False, "duration_ms": 7}
    assert one.closed() == 1000


def test_all_at_once(client: Callable[..., Client]) -> None:
    """The command, its input and the end of that in one piece."""
    one = client()
    parts = [frame(TEXT, json.dumps(START).encode(), mask=True), frame(BINARY, b"in", mask=True)]
    one.sock.sendall(b"".join([*parts, frame(TEXT, b'{"type":"eof"}', mask=True)]))
    agent = one.agent()
    assert [agent.recv(100), agent.recv(100)] == [frames.INPUT + b"in", frames.INPUT_END]


def test_a_command_that_reads_nothing_makes_its_client_wait(client: Callable[..., Client]) -> None:
    """And its output comes all the same; nothing is lost."""
    one = client()
    one.send(START)
    agent = one.agent()
    content = bytes(range(256)) * 256

    def send() -> None:
        for _ in range(32):
            one.send(content)

    sender = threading.Thread(target=send)
    sender.start()
    agent.send(frames.OUTPUT + b"busy")
    assert one.next() == (BINARY, b"\x01busy")
    received = b""
    while len(received) < 32 * len(content):
        received += agent.recv(1 << 16)[1:]
    assert received == content * 32
    sender.join(20)


def test_a_client_that_goes_ends_the_command(client: Callable[..., Client]) -> None:
    one = client()
    one.send(START)
    agent = one.agent()
    one.sock.close()
    assert agent.recv(100) == b""
    one.thread.join(30)
    assert not one.thread.is_alive()


@pytest.mark.parametrize(
    ("who", "message", "code"),
    [
        ("bob", START, "not_found"),
        ("boss", START, "not_found"),
        ("ada", START | {"command": []}, "validation_failed"),
        ("ada", START | {"command": ["x\0"]}, "validation_failed"),
        ("ada", START | {"timeout_s": 601}, "validation_failed"),
        ("ada", START | {"shell": "sh"}, "validation_failed"),
    ],
)  # fmt: skip
def test_what_is_refused(client: Callable[..., Client], who: str, message: Any, code: str) -> None:
    one = client(who)
    one.send(message)
    told = one.told()
    assert (told["type"], told["error"]["code"]) == ("error", code)
    assert one.closed() == 4500


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (frame(BINARY, b"first", mask=True), 4400),
        (frame(TEXT, b'{"type":"eof"}', mask=True), 4400),
        (frame(TEXT, b'{"command":["cat"]}', mask=True), 4400),
        (frame(BINARY, b"unmasked"), 1002),
        (b"\x82\xff\x00\x00\x00\x00\x01\x00\x00\x00", 1009),
    ],
    ids=map(str, range(5)),
)
def test_what_breaks_the_protocol(client: Callable[..., Client], data: bytes, code: int) -> None:
    one = client()
    one.sock.sendall(data)
    assert one.closed() == code


def test_after_the_start(client: Callable[..., Client]) -> None:
    for data, code in (
        (frame(TEXT, b'{"type":"start"}', mask=True), 4400),
        (frame(BINARY, bytes(300_000), mask=True)[:20], 1009),
    ):
        one = client()
        one.send(START)
        one.agent()
        one.sock.sendall(data)
        assert one.closed() == code
        one.end()


def test_access_that_is_lost(client: Callable[..., Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(piping, "ACCESS_ENDED_S", 0.01)
    monkeypatch.setattr(rechecks, "ACCESS_ENDED_S", 0.01)
    monkeypatch.setattr(rechecks, "ACCESS_RECHECK_S", 0.01)

    def refuse() -> None:
        raise errors.AccountDisabled("disabled")

    one = client(require=refuse)
    one.send(START)
    assert one.told()["error"]["code"] == "account_disabled"
    assert one.closed() == 4500


# --- clients that mean harm ---------------------------------------------------------------------


def cpu_s(thread: threading.Thread) -> float:
    """The processor time that a thread has used."""
    return time.clock_gettime(time.pthread_getcpuclockid(thread.ident or 0))


def flood(one: Client, content: bytes, most: int) -> int:
    """Send this again and again; how many bytes were taken until none is for a while, at most so many."""
    one.sock.settimeout(1)
    taken = 0
    with contextlib.suppress(TimeoutError, OSError):
        while taken < most:
            taken += one.sock.send(content)
    one.sock.settimeout(20)
    return taken


@pytest.mark.parametrize("begun", [False, True])
def test_pings_of_a_client_that_never_reads_fill_nothing(client: Callable[..., Client], begun: bool) -> None:
    """Each asks for an answer as long as itself, which waits for the client."""
    one = client()
    if begun:
        one.send(START)
        one.agent()
    assert flood(one, frame(PING, bytes(125), mask=True) * 500, 8 << 20) < 4 << 20


def test_a_client_that_never_reads_costs_no_processor(client: Callable[..., Client]) -> None:
    """Its command has ended long ago; what it has printed waits."""
    one = client()
    one.send(START)
    agent = one.agent()
    agent.settimeout(1)
    with pytest.raises(TimeoutError):
        while True:
            agent.send(frames.OUTPUT + bytes(frames.DATA_MAX))
    agent.shutdown(socket.SHUT_RDWR)
    before = cpu_s(one.thread)
    time.sleep(1)
    assert cpu_s(one.thread) - before < 0.3


@pytest.mark.parametrize("begun", [False, True])
def test_a_descriptor_with_a_high_number(client: Callable[..., Client], begun: bool) -> None:
    """As a listener has with a thousand connections: select(2) knows none of them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    held = [os.open("/dev/null", os.O_RDONLY | os.O_CLOEXEC) for _ in range(1100)]
    try:
        one = client()
        assert one.theirs > 1024
        time.sleep(0.2)  # it waits for the first message
        if begun:
            one.send(START)
            agent = one.agent()
            agent.settimeout(1)
            with pytest.raises(TimeoutError):
                while True:
                    agent.send(frames.OUTPUT + bytes(frames.DATA_MAX))
            one.ending.set()
            time.sleep(0.2)
            while one.next()[0] == BINARY:
                pass
        else:
            one.sock.sendall(frame(BINARY, b"first", mask=True))
            assert one.closed() == 4400
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
