"""Server-sent events: their form and their ends."""

from __future__ import annotations

import json

import pytest
from unit.streaming import CALLER, start, until

from svc.errors import NotFound
from svc.web.streaming import loop as loops
from svc.web.streaming import sse
from svc.web.streaming import stream as streams


def rest_of(client: object) -> bytes:
    received = b""
    while part := client.recv(4096):  # type: ignore[attr-defined]  # a socket
        received += part
    return received


def test_an_event_is_ascii_and_one_line() -> None:
    sent = sse.event("log", {"text": "a\nevent: end\r\u2028\0ü"}, "7")
    first, second, third, *empty = sent.decode("ascii").split("\n")
    assert (first, second, empty) == ("id: 7", "event: log", ["", ""])
    assert json.loads(third.removeprefix("data: ")) == {"text": "a\nevent: end\r\u2028\0ü"}


def test_it_ends_with_an_event(default_loop: loops.Loop) -> None:
    for last, name in (("finish", b"end"), ("fail", b"error")):
        stream = sse.EventStream(CALLER, lambda: None, "req-1")
        client, over = start(stream, head=b"")
        arguments = [NotFound("gone")] if last == "fail" else []
        stream.post(lambda stream=stream, last=last, arguments=arguments: getattr(stream, last)(*arguments))
        received = rest_of(client)
        assert received.startswith(b"event: " + name)
        assert received.endswith(b"\n\n")
        client.close()
        assert over.wait(20)


def test_a_heartbeat_is_a_comment(default_loop: loops.Loop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.02)
    stream = sse.EventStream(CALLER, lambda: None, "req-1")
    client, over = start(stream, head=b"")
    assert client.recv(100).startswith(sse.HEARTBEAT)
    client.close()
    assert over.wait(20)
    until(lambda: not default_loop.streams)


def test_it_is_sent_in_chunks_that_are_whole(default_loop: loops.Loop) -> None:
    stream = sse.EventStream(CALLER, lambda: None, "req-1")
    stream.is_chunked = True
    client, over = start(stream, head=b"HEAD")
    stream.post(lambda: (stream.send(b"0123456789"), stream.finish()))
    last = sse.event("end", {})
    chunks = b"A\r\n0123456789\r\n" + b"%X\r\n%b\r\n" % (len(last), last) + b"0\r\n\r\n"
    assert rest_of(client) == b"HEAD" + chunks
    client.close()
    assert over.wait(20)
