"""A viewer on a real terminal, against a service that speaks WebSocket: bytes, sizes, breaks, every end."""

from __future__ import annotations

import fcntl
import json
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from svc import websocket
from svc.websocket import BINARY, CLOSE, TEXT, Receiver, frame

pytestmark = pytest.mark.allow_commands(os.path.basename(sys.executable))

ROOT = Path(__file__).resolve().parents[4]
ATTACHED = {"type": "attached", "terminal": {"id": "t-4k2m9x"}}


class Connection:
    """The service's end of a viewer's connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        sock.settimeout(30)
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(4096)
        self.path = head.split()[1].decode()
        key = next(
            line.split(b": ")[1] for line in head.split(b"\r\n") if line.startswith(b"Sec-WebSocket-Key")
        )
        self.answer = websocket.answer_to(key.decode())
        self.receiver = Receiver(1 << 20, masked=True)
        self.messages: list[tuple[int, bytes]] = []

    def accept(self, *messages: bytes) -> None:
        head = f"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {self.answer}\r\n\r\n"
        self.sock.sendall(head.encode() + text(ATTACHED) + b"".join(messages))

    def refuse(self, status: int, code: str, *, retryable: bool) -> None:
        error = {"code": code, "message": f"said {code}", "retryable": retryable}
        body = json.dumps({"error": error}).encode()
        self.sock.sendall(f"HTTP/1.1 {status} No\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
        self.sock.close()

    def next(self) -> tuple[int, bytes]:
        while not self.messages:
            data = self.sock.recv(65536)
            if not data:
                return (CLOSE, b"")
            self.messages += self.receiver.feed(data)
        return self.messages.pop(0)

    def typed(self) -> bytes:
        """The next keys."""
        while True:
            kind, content = self.next()
            if kind == BINARY:
                return content
            assert kind == TEXT, (kind, content)

    def resized(self) -> tuple[int, int]:
        """The next size."""
        kind, content = self.next()
        assert kind == TEXT, (kind, content)
        message = json.loads(content)
        assert message["type"] == "resize"
        return message["cols"], message["rows"]


def text(message: dict[str, Any]) -> bytes:
    return frame(TEXT, json.dumps(message).encode())


def ended(reason: str, code: int | None) -> bytes:
    closing = frame(CLOSE, websocket.closing(4000 if reason == "exited" else 4001, reason))
    return text({"type": "exit", "reason": reason, "exit_code": code}) + closing


class Window:
    """`svc ws shell demo` in a window."""

    def __init__(self, path: Path, *options: str) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path / "svc.sock"))
        self.listener.listen()
        self.listener.settimeout(30)
        self.keys, tty = os.openpty()
        self.resize(97, 31)
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "SVC_SOCKET": str(path / "svc.sock")}
        argv = [sys.executable, "-m", "svc", "ws", "shell", "demo", *options]
        self.process = subprocess.Popen(
            argv, stdin=tty, stdout=tty, stderr=tty, env=env, start_new_session=True
        )
        os.close(tty)
        self.screen = b""
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def _read(self) -> None:
        while True:
            try:
                part = os.read(self.keys, 65536)
            except OSError:
                return
            self.screen += part

    def connection(self) -> Connection:
        sock, _ = self.listener.accept()
        return Connection(sock)

    def resize(self, cols: int, rows: int) -> None:
        fcntl.ioctl(self.keys, termios.TIOCSWINSZ, struct.pack("4H", rows, cols, 0, 0))

    def type(self, keys: bytes) -> None:
        os.write(self.keys, keys)

    def expect(self, wanted: bytes) -> None:
        until(lambda: wanted in self.screen, lambda: f"no {wanted!r} in {self.screen!r}")

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.keys)[3] & (termios.ECHO | termios.ICANON | termios.ISIG)

    def end(self) -> int:
        return self.process.wait(30)

    def close(self) -> None:
        self.process.kill()
        self.process.wait(30)
        self.reader.join(30)
        os.close(self.keys)
        self.listener.close()


def until(holds: Callable[[], bool], otherwise: Callable[[], str] = str) -> None:
    ends_at = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < ends_at, otherwise()
        select.select([], [], [], 0.01)


@pytest.fixture
def window(tmp_path: Path) -> Iterator[Callable[..., Window]]:
    windows: list[Window] = []

    def create(*options: str) -> Window:
        windows.append(Window(tmp_path, *options))
        return windows[-1]

    yield create
    for each in windows:
        each.close()


def test_bytes_sizes_and_the_exit_code(window: Callable[..., Window]) -> None:
    one = window("--command", "top -d 1")
    service = one.connection()
    assert "cols=97&rows=31" in service.path
    assert "command=%5B%22sh%22%2C%20%22-c%22%2C%20%22top%20-d%201%22%5D" in service.path
    service.accept(frame(BINARY, b"prompt# "))
    one.expect(b"prompt# ")
    assert one.is_raw()
    assert service.resized() == (97, 31)
    one.type(b"ls\r\x03\xff")
    assert service.typed() == b"ls\r\x03\xff"
    one.resize(120, 40)
    os.kill(one.process.pid, signal.SIGWINCH)  # as the kernel sends it in a window of one's own
    assert service.resized() == (120, 40)
    service.sock.sendall(frame(BINARY, b"\x1b[?1049h") + ended("exited", 7))
    assert one.end() == 1
    one.expect(b"the shell exited with code 7")
    assert b"\x1b[?1049l" in one.screen
    assert not one.is_raw()


@pytest.mark.parametrize(
    ("reason", "code", "options", "exit_code", "said"),
    [
        ("exited", 0, (), 0, b""),
        ("exited", 7, ("--exit-status",), 7, b""),
        ("exited", None, (), 1, b"the shell has ended"),
        ("closed", None, (), 1, b"the terminal was closed"),
        (
            "stopped",
            None,
            (),
            1,
            b"the workspace has stopped, and the terminal with it\r\nhint: svc ws start demo\r\n",
        ),
    ],
)
def test_the_end(
    window: Callable[..., Window], reason: str, code: int | None, options: tuple[str, ...], exit_code: int,
    said: bytes,
) -> None:  # fmt: skip
    one = window(*options)
    one.connection().accept(ended(reason, code))
    assert one.end() == exit_code
    one.expect(said)
    assert not one.is_raw()


def test_detaching(window: Callable[..., Window]) -> None:
    one = window()
    service = one.connection()
    service.accept()
    one.type(b"x\x10")
    assert service.typed() == b"x"
    one.type(b"y")
    assert service.typed() == b"\x10y"
    one.type(b"\x10\x11")
    assert one.end() == 0
    one.expect(b"svc ws shell demo --attach t-4k2m9x")
    while service.next()[0] != CLOSE:
        pass


@pytest.mark.parametrize("code", [None, 1012])
def test_it_comes_back(window: Callable[..., Window], code: int | None) -> None:
    """After a restart, and when the connection breaks without a word."""
    one = window()
    service = one.connection()
    service.accept(frame(CLOSE, websocket.closing(code)) if code else b"")
    one.expect(b"Attaching again") if code else None
    service.sock.close()
    one.expect(b"Attaching again")
    one.connection().refuse(503, "maintenance", retryable=True)
    service = one.connection()
    assert "id=t-4k2m9x" in service.path
    service.accept(frame(BINARY, b"again# "))
    one.expect(b"again# ")
    assert service.resized() == (97, 31)
    service.sock.sendall(ended("exited", 0))
    assert one.end() == 0


def test_what_is_gone_for_good(window: Callable[..., Window]) -> None:
    one = window()
    service = one.connection()
    service.accept()
    service.sock.close()
    one.connection().refuse(404, "not_found", retryable=False)
    assert one.end() == 1
    one.expect(b"said not_found")
    assert not one.is_raw()


def test_enough_of_waiting(window: Callable[..., Window]) -> None:
    one = window()
    service = one.connection()
    service.accept()
    one.listener.close()
    service.sock.close()
    one.expect(b"Attaching again")
    one.type(b"\x03")
    assert one.end() == 0
    assert not one.is_raw()


def test_access_that_is_lost(window: Callable[..., Window]) -> None:
    one = window()
    one.connection().accept(frame(CLOSE, websocket.closing(4003, "account_disabled")))
    assert one.end() == 1
    one.expect(b"access to the terminal is lost: account_disabled")
    one.expect(b"hint: svc whoami\r\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_signals(window: Callable[..., Window], number: int) -> None:
    one = window()
    one.connection().accept(frame(BINARY, b"\x1b[?25lready"))
    one.expect(b"ready")
    os.kill(one.process.pid, number)
    assert one.end() == -number
    one.expect(b"\x1b[?25h")
    assert not one.is_raw()


def test_a_refusal_leaves_the_window_alone(window: Callable[..., Window]) -> None:
    one = window()
    one.connection().refuse(409, "workspace_not_running", retryable=False)
    assert one.end() == 1
    one.expect(b"said workspace_not_running")
    assert not one.is_raw()
