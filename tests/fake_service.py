"""A small HTTP server on a real Unix socket, which answers the client from a table."""

from __future__ import annotations

import contextlib
import io
import json
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

REASONS = {200: "OK", 201: "CREATED", 202: "ACCEPTED", 204: "NO CONTENT"}


class Request(NamedTuple):
    """A received request."""

    line: str
    fields: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Service:
    """Answers each `METHOD path` with its next reply; the last one is repeated."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.replies: dict[str, list[bytes | Callable[[socket.socket], None]]] = {}
        self.requests: list[Request] = []
        self.reads_bodies = True
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def answer(self, request: str, *bodies: Any, status: int = 200) -> None:
        """Add JSON bodies with which a request is answered, in this order."""
        for body in bodies:
            content = b"" if body is None else json.dumps(body).encode()
            head = f"HTTP/1.1 {status} {REASONS.get(status, 'NO')}\r\nContent-Length: {len(content)}\r\n\r\n"
            self.raw(request, head.encode() + content)

    def refuse(self, request: str, status: int, code: str, message: str, **more: Any) -> None:
        """Add an error body."""
        self.answer(request, {"error": {"code": code, "message": message, **more}}, status=status)

    def raw(self, request: str, *replies: bytes | Callable[[socket.socket], None]) -> None:
        """Add replies as raw bytes, or functions that take the connection."""
        self.replies.setdefault(request, []).extend(replies)

    @property
    def sent(self) -> list[str]:
        """The first lines of all requests, without the version."""
        return [request.line for request in self.requests]

    @property
    def last(self) -> Request:
        return self.requests[-1]

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            # a client may close the connection before it has read the whole answer
            with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
                self._reply(connection)

    def _reply(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as file:
            line = file.readline().decode().rpartition(" ")[0]
            if not line:
                return
            fields = {}
            while (field := file.readline().decode().rstrip("\r\n")) != "":
                name, _, value = field.partition(": ")
                fields[name.lower()] = value
            body = self._body(file, fields) if self.reads_bodies else b""
        self.requests.append(Request(line, fields, body))
        replies = self.replies.get(line) or [b"HTTP/1.1 404 NO\r\nContent-Length: 0\r\n\r\n"]
        reply = replies.pop(0) if len(replies) > 1 else replies[0]
        if isinstance(reply, bytes):
            connection.sendall(reply)
        else:
            reply(connection)

    @staticmethod
    def _body(file: BinaryIO, fields: dict[str, str]) -> bytes:
        """The body; incomplete if the client closed the connection early."""
        if fields.get("transfer-encoding") != "chunked":
            return file.read(int(fields.get("content-length", 0)))
        body = b""
        while size := int(file.readline() or b"0", 16):
            body += file.read(size)
            file.readline()
        return body

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.thread.join(5)
        self.listener.close()


class Stream(io.TextIOWrapper):
    """A standard stream in memory, a terminal or a pipe."""

    def __init__(self, terminal: bool, content: bytes = b"") -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8", errors="backslashreplace", newline="\n")
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def text(self) -> str:
        self.flush()
        return self.buffer.getvalue().decode("utf-8", "backslashreplace")  # type: ignore[attr-defined]


class Outcome(NamedTuple):
    """The exit code and output of a command line."""

    code: int
    out: str
    err: str


Svc = Callable[..., Outcome]
