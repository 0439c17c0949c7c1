"""Connections on both real listeners while no thread serves them: heads in pieces, half handshakes, ends."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from gunicorn.config import Config
from unit.web.gunicorn_worker.test_listeners import (  # noqa: F401  (fixtures)
    Served,
    Shared,
    served,
    shared_listeners,
    socket_folder,
)

from svc.limits import HEAD_MAX, WEB_THREADS
from svc.server.listeners import SO_PASSRIGHTS
from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.web.gunicorn_worker.connections import Connection, Ended
from svc.web.gunicorn_worker.shares import Share

GET = b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n"
PATIENCE_S = 0.4
LONG_S = 8
MANY = WEB_THREADS * 2

Connect = Callable[[], socket.socket]


def connection(server: Served) -> socket.socket:
    sock = socket.socket(server.listener.family)
    sock.settimeout(10)
    sock.connect(server.listener.getsockname())
    return sock


def answer(sock: socket.socket) -> bytes:
    """One response with its body; empty when the connection was closed without one."""
    data = b""
    while b"\r\n\r\n" not in data or not data.partition(b"\r\n\r\n")[2]:
        part = sock.recv(65536)
        if not part:
            break
        data += part
    return data


def waits(seconds: float) -> dict[str, float]:
    """How long the listener waits for a slow client."""
    times = {"READING_S": seconds, "IDLE_S": seconds, "BODY_GRACE_S": min(seconds, 1.0) / 2}
    return {f"svc.web.gunicorn_worker.connections.{name}": value for name, value in times.items()}


def opened(kind: str, shared: Shared) -> Served:
    """One of the listeners."""
    if kind == "tls":
        files = Certificate(*(str(shared.folder / "tls" / name) for name in ("cert.pem", "key.pem")))
        certificates.create(files, ["localhost"])
        return shared.start("tls", certificate=files)  # type: ignore[no-any-return]
    unix: Served = shared.start("unix")
    if kind == "guarded unix":
        unix.let_descriptors_through()
    return unix


KINDS = ("unix", "guarded unix", "tls")


@pytest.fixture(scope="module", params=KINDS)
def server(request: Any, tmp_path_factory: Any, socket_folder: Path) -> Iterator[Served]:  # noqa: F811  (fixture)
    """Each listener in turn, for all tests; patience is short."""
    folder = tmp_path_factory.mktemp("shared")
    with shared_listeners(folder, socket_folder, waits(PATIENCE_S)) as shared:
        yield opened(request.param, shared)


@pytest.fixture(params=KINDS)
def patient(request: Any, tmp_path: Path, socket_folder: Path) -> Iterator[Served]:  # noqa: F811
    """A listener that waits for longer than any load of the host delays it."""
    with shared_listeners(tmp_path, socket_folder, waits(LONG_S)) as shared:
        yield opened(request.param, shared)


@contextlib.contextmanager
def connecting(server: Served) -> Iterator[Connect]:
    """connect() to a listener, with TLS where it has it; all are closed at the end."""
    with contextlib.ExitStack() as stack:

        def ready() -> socket.socket:
            sock = stack.enter_context(connection(server))
            if server.certificate is None:
                return sock
            context = ssl.create_default_context(cafile=server.certificate.chain)
            return stack.enter_context(context.wrap_socket(sock, server_hostname="localhost"))

        yield ready


@pytest.fixture
def connect(server: Served) -> Iterator[Connect]:
    """Connections to the listener."""
    with connecting(server) as ready:
        yield ready


def test_a_head_may_come_in_pieces(connect: Connect) -> None:
    sock = connect()
    for piece in (GET[:1], GET[1:20], GET[20:-2], GET[-2:]):
        sock.sendall(piece)
        time.sleep(0.03)
    assert answer(sock).startswith(b"HTTP/1.1 200")


def test_requests_may_come_at_once(connect: Connect) -> None:
    sock = connect()
    sock.sendall(GET * 5 + GET[:10])
    data = b""
    while data.count(b"\r\n\r\n{") < 5 or not data.endswith(b"}"):
        part = sock.recv(65536)
        assert part
        data += part
    sock.sendall(GET[10:])
    assert answer(sock).startswith(b"HTTP/1.1 200")


def test_half_requests_hold_no_thread(patient: Served) -> None:
    with contextlib.ExitStack() as stack:
        for number in range(MANY):
            sock = stack.enter_context(connection(patient))
            sock.sendall((b"\x16\x03\x01\x02", b"GET / HT", b"")[number % 3])
        began = time.monotonic()
        sock = stack.enter_context(connecting(patient))()
        sock.sendall(GET)
        assert answer(sock).startswith(b"HTTP/1.1 200")
        assert time.monotonic() - began < LONG_S


@pytest.mark.parametrize("first", [b"", b"G"])
def test_who_takes_too_long_is_let_go(connect: Connect, first: bytes) -> None:
    sock = connect()
    sock.sendall(first)
    began = time.monotonic()
    assert answer(sock) == b""
    assert PATIENCE_S * 0.9 < time.monotonic() - began < 3


def test_a_drip_does_not_extend_the_time(connect: Connect) -> None:
    sock, began = connect(), time.monotonic()
    with contextlib.suppress(OSError):
        for piece in GET:
            sock.sendall(bytes([piece]))
            time.sleep(0.05)
    assert not _was_answered(sock)
    assert time.monotonic() - began < 5


def _was_answered(sock: socket.socket) -> bool:
    try:
        return bool(answer(sock))
    except OSError:
        return False


@pytest.mark.parametrize(
    ("head", "status"),
    [(b"GET /" + b"a" * HEAD_MAX, b"414"), (b"GET / HTTP/1.1\r\nX: " + b"a" * HEAD_MAX, b"431")],
)
def test_a_head_without_end_is_refused(connect: Connect, head: bytes, status: bytes) -> None:
    sock = connect()
    sock.sendall(head)
    assert answer(sock).split()[1] == status


def test_expect_100_continue_is_answered_before_the_body(connect: Connect) -> None:
    sock = connect()
    sock.sendall(
        b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    )
    data = sock.recv(65536)
    assert data.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    sock.sendall(b"{}")
    while b"}" not in data:
        part = sock.recv(65536)
        assert part
        data += part
    assert data.partition(b"\r\n\r\n")[2].split()[1] in (b"403", b"422")


def test_a_body_that_nobody_reads_does_not_hold_the_thread(server: Served, connect: Connect) -> None:
    """Refused before the body: the rest of it is not awaited."""
    half = b"DELETE /api/none HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{"
    socks = [connect() for _ in range(20)]
    for sock in socks:
        sock.sendall(half)
    began = time.monotonic()
    for sock in socks:
        assert answer(sock).split()[1] in (b"401", b"404")
    sock = connect()
    sock.sendall(GET)
    assert answer(sock).startswith(b"HTTP/1.1 200")
    assert time.monotonic() - began < 2


def test_small_bodies_hold_no_thread(patient: Served) -> None:
    """A login whose body comes a byte at a time held one of its client's threads for READING_S a byte."""
    half = (
        b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 40\r\n\r\n{"
    )
    with connecting(patient) as connect:
        for _ in range(60):
            connect().sendall(half)
        for _ in range(12):
            sock = connect()
            began = time.monotonic()
            sock.sendall(GET)
            assert answer(sock).startswith(b"HTTP/1.1 200")
            assert time.monotonic() - began < 1
            time.sleep(0.25)  # until long after the time for a small body


def test_a_body_in_pieces_is_read_whole(connect: Connect) -> None:
    sock = connect()
    sock.sendall(
        b"POST /api/auth/login HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        b"Content-Length: 14\r\n\r\n"
    )
    for byte in b'{"surprise":1}':
        sock.sendall(bytes([byte]))
    found = answer(sock)
    assert found.split()[1] in (b"403", b"422")
    assert b"not_allowed_on_socket" in found or b"surprise" in found


def test_plain_http_on_the_port_of_https_is_answered(tmp_path: Path, socket_folder: Path) -> None:  # noqa: F811
    """It was reset without a word."""
    with shared_listeners(tmp_path, socket_folder, waits(LONG_S)) as shared:
        server = opened("tls", shared)
        for accept, kind in (("text/html", b"text/html"), ("*/*", b"application/json")):
            with connection(server) as sock:
                sock.sendall(f"GET /x HTTP/1.1\r\nHost: lab.example:99\r\nAccept: {accept}\r\n\r\n".encode())
                found = answer(sock)
            assert found.startswith(b"HTTP/1.1 400 ")
            assert b"Content-Type: " + kind in found
            assert b"https://lab.example:99/" in found
        with connecting(server) as connect:
            sock = connect()
            sock.sendall(GET)
            assert answer(sock).startswith(b"HTTP/1.1 200")


def test_silent_connections_are_taken_from_the_queue(server: Served, connect: Connect) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(300):
            stack.enter_context(connection(server))
        sock = connect()
        sock.sendall(GET)
        assert answer(sock).startswith(b"HTTP/1.1 200")


def test_the_kernel_refuses_descriptors(served: Any) -> None:  # noqa: F811  (fixture)
    server = served("unix")
    try:
        server.listener.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
    except OSError:
        pytest.skip("this kernel has no SO_PASSRIGHTS")
    with connection(server) as sock, open(os.devnull) as file, pytest.raises(PermissionError):
        socket.send_fds(sock, [GET], [file.fileno()])


def test_a_client_that_resets_its_connection_before_tls_ends_nothing_else(
    served: Any,  # noqa: F811  (fixture)
    tmp_path: Path,
) -> None:
    server = served("tls", certificate=_certificate(tmp_path))
    for first in (b"", b"\x16"):
        waiting = connection(server)
        _request(server)  # so that the one before is watched
        os.kill(server.pid, signal.SIGSTOP)
        try:
            waiting.sendall(first)
            _reset(waiting)
        finally:
            os.kill(server.pid, signal.SIGCONT)
        for _ in range(3):  # one of these gets the descriptor of the one that has gone
            _request(server)


def test_a_reset_after_the_first_byte_leaves_the_poller_its_descriptor(tmp_path: Path) -> None:
    """The failed handshake closes the socket: what watches it is still known, and can be forgotten."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*_certificate(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        client.sendall(b"\x16")
        sock, address = listener.accept()

        def reset_meanwhile() -> ssl.SSLContext:
            _reset(client)
            select.select([], [], [sock], 0.1)  # over loopback it has come by then
            return context

        with sock:
            select.select([sock], [], [], 10)
            descriptor = sock.fileno()
            one = Connection(Config(), sock, address, listener.getsockname(), Share("client"))
            with pytest.raises((Ended, OSError)):
                one.advance(reset_meanwhile)
            assert (one.descriptor, one.sock.fileno()) == (descriptor, -1)


def _certificate(folder: Path) -> Certificate:
    files = Certificate(*(str(folder / name) for name in ("cert.pem", "key.pem")))
    certificates.create(files, ["localhost"])
    return files


def _reset(sock: socket.socket) -> None:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()


def _request(server: Served) -> None:
    with connecting(server) as ready:
        sock = ready()
        sock.sendall(GET)
        assert answer(sock).startswith(b"HTTP/1.1 200")
