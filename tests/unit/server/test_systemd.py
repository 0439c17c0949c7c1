"""What systemd is told: that the service is ready, and, while health answers, that it lives."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc.server import systemd
from svc.server.systemd import PER_INTERVAL, QUESTION, Watchdog, notify

INTERVAL_S = 120


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """systemd's end of NOTIFY_SOCKET."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        sock.bind(str(tmp_path / "notify"))
        monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
        monkeypatch.setenv("WATCHDOG_USEC", str(INTERVAL_S * 1_000_000))
        monkeypatch.setenv("WATCHDOG_PID", str(os.getpid()))
        yield sock


@pytest.fixture
def host_socket(tmp_path: Path) -> Iterator[socket.socket]:
    """A listener's end of the host socket, whose queue has room for one."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
        sock.bind(str(tmp_path / "svc.sock"))
        sock.listen(0)
        yield sock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr(systemd.time, "monotonic", lambda: now[0])
    return now


def received(sock: socket.socket) -> bytes:
    """What systemd has been told since; empty without a message."""
    try:
        return sock.recv(100)
    except BlockingIOError:
        return b""


@pytest.mark.parametrize("status", [b"200 OK", b"503 SERVICE UNAVAILABLE"])
def test_an_answer_is_life(
    told: socket.socket, host_socket: socket.socket, tmp_path: Path, status: bytes
) -> None:
    watchdog = Watchdog(str(tmp_path / "svc.sock"))
    watchdog.step()
    client, _ = host_socket.accept()
    with client:
        assert client.recv(1000) == QUESTION
        watchdog.step()
        assert not received(told)
        client.send(b"HTTP/1.1 " + status + b"\r\n\r\n{}")
        watchdog.step()
    assert received(told) == b"WATCHDOG=1\n"
    watchdog.step()
    assert not received(told)


@pytest.mark.parametrize("reply", [b"", b"HTTP", b"\0" * 100])
def test_no_answer_is_none(
    told: socket.socket, host_socket: socket.socket, tmp_path: Path, reply: bytes
) -> None:
    watchdog = Watchdog(str(tmp_path / "svc.sock"))
    watchdog.step()
    client, _ = host_socket.accept()
    client.send(reply)
    client.close()
    watchdog.step()
    assert not received(told)


def test_it_asks_again(
    told: socket.socket, host_socket: socket.socket, clock: list[float], tmp_path: Path
) -> None:
    """A question without an answer is dropped for the next one; one holds a connection at a time."""
    watchdog = Watchdog(str(tmp_path / "svc.sock"))
    for _ in range(3):
        watchdog.step()
        client, _ = host_socket.accept()
        with client, pytest.raises(BlockingIOError):
            watchdog.step()
            host_socket.accept()
        clock[0] += INTERVAL_S / PER_INTERVAL
    assert not received(told)


def test_a_full_queue_and_nobody(
    told: socket.socket, host_socket: socket.socket, clock: list[float], tmp_path: Path
) -> None:
    """It waits for nothing, and asks again later."""
    path = str(tmp_path / "svc.sock")
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(path)
    watchdog = Watchdog(path)
    watchdog.step()
    with waiting:
        host_socket.accept()[0].close()
    os.unlink(path)
    clock[0] += INTERVAL_S / PER_INTERVAL
    watchdog.step()
    assert not received(told)


@pytest.mark.parametrize(
    "environment", [{}, {"WATCHDOG_USEC": "x"}, {"WATCHDOG_USEC": "1000", "WATCHDOG_PID": "1"}]
)
def test_without_a_watchdog(
    told: socket.socket, host_socket: socket.socket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    environment: dict[str, str],
) -> None:  # fmt: skip
    for name in ("WATCHDOG_USEC", "WATCHDOG_PID"):
        monkeypatch.delenv(name)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Watchdog(str(tmp_path / "svc.sock")).step()
    with pytest.raises(BlockingIOError):
        host_socket.accept()


def test_ready(told: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    notify(b"READY=1\n")
    assert received(told) == b"READY=1\n"
    monkeypatch.setenv("NOTIFY_SOCKET", "/nonexistent/notify")
    notify(b"READY=1\n")
    monkeypatch.delenv("NOTIFY_SOCKET")
    notify(b"READY=1\n")
