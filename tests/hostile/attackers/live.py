"""A client of the streams on the host socket that knows no manners: WebSockets and events, byte by byte."""

from __future__ import annotations

import contextlib
import json
import select
import time
from collections.abc import Mapping
from typing import Any

from hostile.attackers.raw import connect, request

from svc.websocket import BINARY, CLOSE, TEXT, Receiver, close_code, frame

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
HANDSHAKE = ("Upgrade: websocket", f"Sec-WebSocket-Key: {KEY}", "Sec-WebSocket-Version: 13")
Message = tuple[int, bytes]


class Live:
    """A connection whose request was sent; the head of the answer is read."""

    def __init__(self, path: str, user: str, url: str, protocol: str = "") -> None:
        self.sock = connect(path, user)
        headers = [*HANDSHAKE, f"Sec-WebSocket-Protocol: {protocol}"] if protocol else []
        data = request("GET", url, b"", *headers)
        if protocol:
            data = data.replace(b"Connection: close", b"Connection: Upgrade")
        self.sock.sendall(data)
        head = b""
        while b"\r\n\r\n" not in head:
            part = self.sock.recv(4096)
            assert part, head
            head += part
        head, _, self.early = head.partition(b"\r\n\r\n")
        self.status = int(head.split()[1])
        self.receiver = Receiver(1 << 20, masked=False)
        self.offset = 0  # of what is flooded with
        self.messages: list[Message] = list(self.receiver.feed(self.early)) if self.status == 101 else []

    def send(self, content: bytes | Mapping[str, Any]) -> None:
        """A message: the terminal's bytes, or a text."""
        kind, data = (BINARY, content) if isinstance(content, bytes) else (TEXT, json.dumps(content).encode())
        self.sock.sendall(frame(kind, data, mask=True))

    def next(self) -> Message | None:
        """The next message; None at the end of the connection."""
        while not self.messages:
            try:
                data = self.sock.recv(65536)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self.messages += self.receiver.feed(data)
        return self.messages.pop(0)

    def rest(self) -> list[Message]:
        """All messages to the end."""
        found = []
        while (message := self.next()) is not None:
            found.append(message)
            if message[0] == CLOSE:
                break
        return found

    def until(self, text: bytes) -> bytes:
        """The terminal's bytes, until this is among them."""
        seen = b""
        while text not in seen:
            message = self.next()
            assert message is not None, seen[-500:]
            seen += message[1] if message[0] == BINARY else b""
        return seen

    def flood(self, content: bytes, most: int, patience_s: float = 1.0) -> int:
        """Send this again and again, reading nothing; the bytes taken, until none is for a while."""
        self.sock.setblocking(False)
        taken, until = 0, time.monotonic() + patience_s
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            while taken < most and time.monotonic() < until:
                try:
                    count = self.sock.send(content[self.offset :])
                except BlockingIOError:
                    select.select([], [self.sock], [], 0.1)
                    continue
                taken, self.offset = taken + count, (self.offset + count) % len(content)
                until = time.monotonic() + patience_s
        self.sock.settimeout(30)
        return taken

    def closed(self) -> int:
        """The code of the close frame that ends it."""
        kind, content = self.rest()[-1]
        assert kind == CLOSE, (kind, content)
        return close_code(content)

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *raised: object) -> None:
        self.sock.close()


def viewer(service: Any, user: str, workspace: str, terminal: str = "", *command: str) -> Live:
    """A viewer of a terminal, or of a new one."""
    query = f"id={terminal}" if terminal else "cols=80"
    if command:
        query += "&command=" + json.dumps(command, separators=(",", ":")).replace(" ", "%20").replace(
            '"', "%22"
        )
    url = f"/api/workspaces/{workspace}/terminal?{query}"
    return Live(service.env["SVC_SOCKET"], user, url, "svc-terminal.1")


def piped(service: Any, user: str, workspace: str) -> Live:
    """A command with input that has not been named yet."""
    return Live(service.env["SVC_SOCKET"], user, f"/api/workspaces/{workspace}/exec/stream", "svc-exec.1")


def events(service: Any, user: str, query: str = "") -> Live:
    """A reader of events."""
    return Live(service.env["SVC_SOCKET"], user, f"/api/events{query}")
