"""`svc ws exec -i`: standard input to the command, its output as it comes, both at once."""

from __future__ import annotations

import os
import select
import sys

from svc.client import transport
from svc.client.websocket import WebSocket, read_json
from svc.errors import BadAnswer, FileRefused, Unreachable
from svc.websocket import BINARY, RESTART, Broken

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = "svc-exec.1"
PART = 64 * 1024
OUTPUTS = {1: 1, 2: 2}  # first byte of a message: descriptor


def run(path: str, request: dict[str, object]) -> dict[str, Any]:
    """Run the command; its {exit_code, timed_out, duration_ms}. Raises the service's error."""
    connection = WebSocket(transport.Upgrade(path, PROTOCOL))
    try:
        connection.send_json({"type": "start", **request})
        return _move(connection)
    except Broken as broken:
        raise BadAnswer(f"the service's answer cannot be read: {broken.reason}") from None
    except EOFError:
        raise _ended(connection) from None
    finally:
        connection.close()


def _move(connection: WebSocket) -> dict[str, Any]:
    reads = True  # whether standard input goes on
    while True:
        for kind, content in connection.messages():
            if kind == BINARY:
                write(OUTPUTS.get(content[0] if content else 0), content[1:])
                continue
            message = read_json(content)
            if message.get("type") == "exit":
                return message
            if message.get("type") == "error":
                raise transport.error_of(message.get("error"), "the service could not run the command")
        poll = select.poll()
        poll.register(connection, select.POLLIN | (select.POLLOUT if connection.unsent else 0))
        if reads and not connection.is_full:
            poll.register(0, select.POLLIN)
        ready = dict(poll.poll())
        if ready.get(connection.fileno(), 0) & select.POLLOUT:
            connection.flush()
        if 0 in ready:
            data = _read()
            if data:
                connection.send(BINARY, data)
            else:
                connection.send_json({"type": "eof"})
                reads = False


def _read() -> bytes:
    try:
        return os.read(0, PART)
    except BlockingIOError:
        return b""
    except OSError as error:
        raise FileRefused(f"cannot read standard input: {error.strerror}") from None


def write(descriptor: int | None, data: bytes) -> None:
    """Write all of it to a standard stream; raises BrokenPipeError, and BadAnswer without a stream."""
    if descriptor is None:
        raise BadAnswer("the service's answer has output of an unknown kind")
    (sys.stdout if descriptor == 1 else sys.stderr).flush()
    view = memoryview(data)
    while view:
        try:
            view = view[os.write(descriptor, view) :]
        except BlockingIOError:  # shared with a program that made it non-blocking
            select.select([], [descriptor], [])


def _ended(connection: WebSocket) -> Exception:
    if connection.closed == RESTART:
        return Unreachable("the service restarts; the command was ended", hint=transport.remedy())
    return Unreachable("the connection to the service broke; the command was ended", hint=transport.remedy())
