"""Streams without a server: the client's end of a connection, and a stream that notes what happens."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from svc.domain.principal import Caller
from svc.web.streaming import loop as loops
from svc.web.streaming.stream import Stream

CALLER = Caller("peer", 1, "ada", 2001, False, "req-1", "", None)  # type: ignore[arg-type]  # no helper is asked


def until(holds: Callable[[], Any]) -> Any:
    """What it gives as soon as that is true."""
    ends_at = time.monotonic() + 20
    while time.monotonic() < ends_at:
        if result := holds():
            return result
        time.sleep(0.005)
    raise AssertionError("it never came true")


class Recorder(Stream):
    """Notes what happens to it."""

    def __init__(self, loop: loops.Loop, require: Callable[[], object] = lambda: None) -> None:
        super().__init__(CALLER, require, loop)
        self.seen: list[Any] = []
        self.in_thread: set[str] = set()

    def note(self, what: Any) -> None:
        self.seen.append(what)
        self.in_thread.add(threading.current_thread().name)

    def opened(self) -> None:
        self.note("opened")

    def received(self, data: bytes) -> None:
        self.note(data)

    def drained(self) -> None:
        self.note("drained")

    def heartbeat(self) -> None:
        self.note("heartbeat")

    def refused(self, error: Any) -> None:
        self.note(error.code)
        self.end()

    def closed(self) -> None:
        self.note("closed")


def start(stream: Stream, head: bytes = b"HEAD", early: bytes = b"") -> tuple[socket.socket, threading.Event]:
    """The client's end of the connection, and what is set at the stream's end."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    ours.settimeout(20)
    over = threading.Event()
    stream.begin(theirs, head, early, over.set)
    return ours, over


class EventReader:
    """The client of a stream of server-sent events, which keeps the last id."""

    def __init__(self, stream: Stream) -> None:
        self.sock, self.over = start(stream, head=b"")
        self.buffer = b""
        self.last_id = ""

    def next(self) -> tuple[str, Any]:
        """The next event; of blocks with an id alone the id is kept, as a client does."""
        while True:
            while b"\n\n" not in self.buffer:
                part = self.sock.recv(65536)
                assert part, "the stream has ended"
                self.buffer += part
            block, _, self.buffer = self.buffer.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in block.decode().split("\n") if line[0] != ":")
            self.last_id = fields.get("id", self.last_id)
            if "event" in fields:
                return fields["event"], json.loads(fields["data"])
