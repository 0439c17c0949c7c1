"""A command with a standard input over a WebSocket, subprotocol `svc-exec.1`: both ways at once, any bytes.

From the client: `start` {command, timeout_s} first, then binary messages for the standard input, `eof` {} at
its end. To it: binary messages whose first byte is 1 (standard output) or 2 (standard error), and at the
end `exit` {exit_code, timed_out, duration_ms}, or `error` {error}. The command ends with the connection.
"""

from __future__ import annotations

import select
import ssl
import time
from collections.abc import Callable, Iterator
from typing import Any

from svc import websocket
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces.live import piped
from svc.domain.workspaces.live.piped import Piped
from svc.errors import Conflict, EngineTimeout, SvcError
from svc.limits import ACCESS_ENDED_S, EXEC_BODY_MAX, PIPED_START_S, READING_S, STREAM_OUTPUT_MAX
from svc.web import inputs
from svc.web.gunicorn_worker import shutdown
from svc.web.rechecks import Recheck
from svc.web.schemas.loading import load
from svc.web.schemas.workspaces import WorkspaceExec
from svc.web.streaming.websocket import BAD_MESSAGE, FAILED, text
from svc.websocket import BINARY, CLOSE, NORMAL, PING, PONG, RESTART, TEXT, Broken, Receiver

PROTOCOL = "svc-exec.1"
PART = 64 * 1024
INPUT_MAX = 256 * 1024  # bytes of a message after the first
STREAMS = {"stdout": b"\x01", "stderr": b"\x02"}
WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)
_START = WorkspaceExec()


class Gone(Exception):
    """The client has closed the connection."""


class Channel:
    """The connection as messages; nothing here waits."""

    def __init__(self, sock: Any, early: bytes) -> None:
        self.sock = sock
        self.receiver = Receiver(EXEC_BODY_MAX, masked=True)
        self.early, self.was_read = early, bool(early)
        self.output = bytearray()

    def send(self, data: bytes) -> None:
        """Send, as far as there is room now."""
        self.output += data
        self.flush()

    def flush(self) -> None:
        """Send what waits; raises Gone."""
        try:
            while self.output:
                del self.output[: self.sock.send(self.output[:PART])]
        except WOULD_BLOCK:
            pass
        except OSError:
            raise Gone from None

    @property
    def is_full(self) -> bool:
        """Whether enough waits for the client: it is not read meanwhile, since its pings want answers."""
        return len(self.output) > STREAM_OUTPUT_MAX

    def wait(self, event: int, within_s: float) -> None:
        """Wait for the client; not by select(2), which knows no descriptor above 1023."""
        poll = select.poll()
        poll.register(self.sock, event)
        poll.poll(within_s * 1000)

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """The data messages of one read, and those left from the last; raises Gone, Broken."""
        data, self.early = self.early, b""
        if not data:
            data = self._read()
        for kind, content in self.receiver.feed(data):
            if kind == CLOSE:
                raise Gone
            if kind == PING:
                self.send(websocket.frame(PONG, content))
            elif kind != PONG:
                yield kind, content

    def _read(self) -> bytes:
        """What is there now; raises Gone at the end."""
        try:
            data: bytes = self.sock.recv(PART)
        except WOULD_BLOCK:
            return b""
        except OSError:
            raise Gone from None
        if not data:
            raise Gone
        self.was_read = True
        return data

    def close(self, code: int, reason: str, within_s: float = 2.0) -> None:
        """Say why it ends; waits a little for a client who is slow to read."""
        self.send(websocket.frame(CLOSE, websocket.closing(code, reason)))
        until = time.monotonic() + within_s
        while self.output and time.monotonic() < until:
            self.wait(select.POLLOUT, 0.1)
            self.flush()


def serve(caller: Caller, ref: str, require: Callable[[], object], sock: Any, early: bytes) -> None:
    """Run the command that the client names, until it or the connection ends."""
    channel = Channel(sock, early)
    try:
        with long_calls.counted(caller):  # it holds a thread
            request = load(_START, _first(channel))
        with piped.started(
            caller, ref, request["command"], request["timeout_s"], hangup_fds=shutdown.descriptors()
        ) as run:
            result = _Piping(channel, run, Recheck(caller, require)).result()
        channel.send(text({"type": "exit", **result}))
        channel.close(NORMAL, "", READING_S)
    except Gone:
        pass
    except Broken as broken:
        _quietly(channel, broken.code, broken.reason)
    except SvcError as error:
        if isinstance(error, Conflict) and shutdown.begun():
            _quietly(channel, RESTART, "the service restarts; the command was ended")
            return
        channel.output += text({"type": "error", **error.body(caller.rid)})
        _quietly(channel, FAILED, error.code)


def _quietly(channel: Channel, code: int, reason: str) -> None:
    try:
        channel.close(code, reason)
    except Gone:
        pass


def _first(channel: Channel) -> dict[str, Any]:
    """The first message without its type: what is to be run."""
    began = time.monotonic()
    while True:
        for kind, content in () if channel.is_full else channel.messages():
            found = _start(content) if kind == TEXT else {}
            if found.pop("type", "") != "start":
                raise Broken(BAD_MESSAGE, "the first message is start")
            channel.receiver.most = INPUT_MAX
            return found
        within_s = READING_S if channel.was_read else PIPED_START_S
        if time.monotonic() > began + within_s:
            raise EngineTimeout(f"no command came within {within_s:.0f} seconds")
        channel.wait(select.POLLOUT if channel.is_full else select.POLLIN, 1.0)
        channel.flush()


def _start(content: bytes) -> dict[str, Any]:
    return inputs.parse_object(content, inputs.members_max(_START), _START.brackets_max)


class _Piping:
    """Moves bytes between the client and the command; neither is read faster than the other takes it."""

    def __init__(self, channel: Channel, run: Piped, recheck: Recheck) -> None:
        self.channel, self.run, self.recheck = channel, run, recheck
        self.input = bytearray()
        self.input_ended = self.eof_passed = False

    def result(self) -> dict[str, Any]:
        """The command's result; raises Gone, Broken, SvcError."""
        while True:
            moved = self._receive()
            self._pass_on()
            for _ in range(16):
                if self.channel.is_full:
                    break
                message = self.run.receive()
                if message is None:
                    break
                kind, content = message
                if kind == "end":
                    return dict(content)
                moved = True
                self.channel.send(websocket.frame(BINARY, STREAMS[kind] + content))
            self.recheck.apply()
            if not moved:
                self._wait()

    def _receive(self) -> bool:
        """Read from the client unless it has to wait; whether anything came."""
        if not self._reads:
            return False
        came = False
        for kind, content in self.channel.messages():
            came = True
            if kind == BINARY and not self.input_ended:
                self.input += content
            elif kind == TEXT and inputs.parse_object(content, 1) == {"type": "eof"}:
                self.input_ended = True
            else:
                raise Broken(BAD_MESSAGE, "no such message")
        return came

    def _pass_on(self) -> None:
        if self.input:
            del self.input[: self.run.send(bytes(self.input))]
        if self.input_ended and not self.input and not self.eof_passed:
            self.eof_passed = self.run.finish_input()

    @property
    def _reads(self) -> bool:
        """Whether the client is read now."""
        return not (self.input or self.input_ended or self.channel.is_full)

    def _wait(self) -> None:
        """Wait until either side has something, or takes something."""
        to_client = select.POLLOUT if self.channel.output else 0
        to_run = select.POLLOUT if self.input or (self.input_ended and not self.eof_passed) else 0
        masks = {
            self.channel.sock.fileno(): to_client | (select.POLLIN if self._reads else 0),
            self.run.fileno(): to_run | (0 if self.channel.is_full else select.POLLIN),
        }
        # One of which nothing is wanted is left out: its hang-up would be told again and again.
        self.run.wait({fd: mask for fd, mask in masks.items() if mask}, ACCESS_ENDED_S)
        self.channel.flush()
