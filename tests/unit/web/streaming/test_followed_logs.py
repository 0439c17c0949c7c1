"""Followed output on the loop: who reads and who does not, the agent's end, a stop of the service."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import pytest
from unit.serving import ROW
from unit.streaming import CALLER, EventReader, until

from svc.domain.places import streams
from svc.domain.workspaces.live import followed
from svc.domain.workspaces.live.followed import Followed, Source
from svc.errors import EngineUnavailable
from svc.helper.transfers import DataStream
from svc.limits import STREAM_OUTPUT_MAX
from svc.web.streaming import followed_logs
from svc.web.streaming import loop as loops
from svc_helper.wire import log_frames as frames

SOURCE = Source("ws-1", None, None)


class Client(EventReader):
    """A client, and the agent at the other end."""

    def __init__(self) -> None:
        self.stream = followed_logs.opened(CALLER, lambda: None, "req-1", SOURCE, times=False)
        super().__init__(self.stream)

    def close(self) -> None:
        """Hang up."""
        self.sock.close()
        assert self.over.wait(20)


@pytest.fixture
def agents(default_loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[socket.socket]]:
    """The agents' ends of what is followed, in order."""
    found: list[socket.socket] = []

    @contextmanager
    def attached(_caller: Any, _source: Source, *, times: bool) -> Iterator[Followed]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.settimeout(20)
        found.append(theirs)
        with ours:
            yield Followed(DataStream(ours, lambda _: None), times=times)

    monkeypatch.setattr(followed, "attached", attached)
    yield found
    until(lambda: not followed_logs._streams_of)
    with ExitStack() as held:
        for theirs in found:
            held.enter_context(theirs)
            with suppress(ConnectionResetError):  # it had sent more
                assert theirs.recv(1) == b"", "the agent finds the end"


def rows(number: int, count: int = 1) -> bytes:
    """A frame of so many lines, from that number on."""
    content = b"".join(ROW + b"line %07d\n" % each for each in range(number, number + count))
    return frames.rows(0, number * (len(ROW) + 13), 0, content)


def test_lines_as_they_come(agents: list[socket.socket]) -> None:
    client = Client()
    for number in range(20):
        agents[0].send(rows(number))
        name, data = client.next()
        assert (name, data["text"], data["stream"]) == ("log", f"line {number:07d}\n", "stdout")
    assert client.last_id == f"0.{19 * (len(ROW) + 13)}.13"
    agents[0].send(frames.END)
    assert client.next() == ("end", {})
    client.close()


def test_who_does_not_read_makes_the_agent_wait(agents: list[socket.socket]) -> None:
    client = Client()
    agents[0].setblocking(False)
    sent = 0

    def is_full() -> bool:
        nonlocal sent
        try:
            agents[0].send(rows(sent * 500, 500))
        except BlockingIOError:
            return client.stream.output != b""
        sent += 1
        return False

    until(is_full)
    assert len(client.stream.output) < STREAM_OUTPUT_MAX
    agents[0].settimeout(20)
    text = ""
    while text.count("\n") < sent * 500:
        text += client.next()[1]["text"]
    assert text == "".join(f"line {number:07d}\n" for number in range(sent * 500))
    client.close()


def test_an_agent_that_dies_is_an_error(agents: list[socket.socket]) -> None:
    client = Client()
    agents[0].shutdown(socket.SHUT_WR)
    name, data = client.next()
    assert (name, data["error"]["code"]) == ("error", "engine_unavailable")
    client.close()


def test_a_stop_makes_clients_come_back(agents: list[socket.socket], default_loop: loops.Loop) -> None:
    client = Client()
    agents[0].send(rows(0))
    client.next()
    default_loop.post(client.stream.stop)
    assert client.next() == ("restarting", {})
    for number in range(5):
        agents[0].send(rows(number))
    client.close()


def test_what_cannot_be_opened_holds_no_place(
    default_loop: loops.Loop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise EngineUnavailable("busy")

    monkeypatch.setattr(followed, "attached", refuse)
    with pytest.raises(EngineUnavailable):
        followed_logs.opened(CALLER, lambda: None, "req-1", SOURCE, times=False)
    assert streams.taken() == 0
