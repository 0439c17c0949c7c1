"""HTTP/1.1 as far as Podman's API needs it: one request over one Unix connection.

The user owns the Podman behind the socket, so every response is untrusted:
bounded, and rejected when malformed.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterator

from svc_helper.agent.calls import Failure

_HEAD_MAX = 32 * 1024
_PART = 64 * 1024
_HEXADECIMAL = b"0123456789abcdefABCDEF"


class Wire:
    """One request and its response; `wait` returns when the socket is ready for a poll mask, or raises."""

    def __init__(self, sock: socket.socket, wait: Callable[[int], None]) -> None:
        self._sock = sock
        self._wait = wait
        self._buffer = b""
        sock.setblocking(False)

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *raised: object) -> None:
        self._sock.close()

    def send(self, method: str, path: str, body: bytes = b"", *, login: str = "") -> None:
        """Send the request; `login` is the value of X-Registry-Auth."""
        head = f"{method} {path} HTTP/1.1\r\nHost: podman\r\nConnection: close\r\n"
        if body or method == "POST":
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        head += f"X-Registry-Auth: {login}\r\n" if login else ""
        rest = memoryview(head.encode() + b"\r\n" + body)
        while rest:
            try:
                rest = rest[self._sock.send(rest) :]
            except BlockingIOError:
                self._wait(select.POLLOUT)
            except OSError:
                raise _closed() from None

    def answer(self) -> tuple[int, Iterator[bytes]]:
        """The status and the body, in parts as they arrive."""
        first, *lines = self._until(b"\r\n\r\n", _HEAD_MAX).decode("latin-1").split("\r\n")
        version, _, rest = first.partition(" ")
        if not version.startswith("HTTP/1.") or not (rest[:3].isascii() and rest[:3].isdecimal()):
            raise not_understood()
        status = int(rest[:3])
        fields = {
            name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        if status in (204, 304):
            return status, iter(())
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return status, self._chunks()
        length = fields.get("content-length")
        if length is None:
            return status, self._to_the_end()
        if not (length.isascii() and length.isdecimal()) or len(length) > 12:
            raise not_understood()
        return status, self._exactly(int(length))

    def _more(self) -> bytes:
        while True:
            try:
                return self._sock.recv(_PART)
            except BlockingIOError:
                self._wait(select.POLLIN)
            except OSError:
                return b""

    def _need(self) -> None:
        part = self._more()
        if not part:
            raise _closed()
        self._buffer += part

    def _until(self, mark: bytes, limit: int) -> bytes:
        while (end := self._buffer.find(mark)) < 0:
            if len(self._buffer) > limit:
                raise not_understood()
            self._need()
        found, self._buffer = self._buffer[:end], self._buffer[end + len(mark) :]
        return found

    def _exactly(self, length: int) -> Iterator[bytes]:
        while length:
            if not self._buffer:
                self._need()
            part, self._buffer = self._buffer[:length], self._buffer[length:]
            length -= len(part)
            yield part

    def _chunks(self) -> Iterator[bytes]:
        while True:
            size = self._until(b"\r\n", 64).partition(b";")[0].strip()
            if not size or size.strip(_HEXADECIMAL) or len(size) > 8:
                raise not_understood()
            if not int(size, 16):
                return
            yield from self._exactly(int(size, 16))
            if self._until(b"\r\n", 2):
                raise not_understood()

    def _to_the_end(self) -> Iterator[bytes]:
        part, self._buffer = self._buffer or self._more(), b""
        while part:
            yield part
            part = self._more()


def whole(parts: Iterator[bytes], limit: int) -> bytes:
    """All parts joined; raises Failure above the limit."""
    content = bytearray()
    for part in parts:
        content += part
        if len(content) > limit:
            raise Failure("failed", "Podman's response is too long")
    return bytes(content)


def not_understood() -> Failure:
    """The Failure for a malformed response of Podman's."""
    return Failure("unavailable", "Podman's response is malformed")


def _closed() -> Failure:
    return Failure("unavailable", "Podman closed the connection")
