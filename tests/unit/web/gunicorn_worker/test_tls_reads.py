"""A read of TLS that would not come back, and all others, which nobody touches."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hostile.attackers.key_updates import Client

from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.web.gunicorn_worker import tls_reads
from svc.web.gunicorn_worker.tls_reads import bounded

MANY = 100_000  # a second and a half of one read, if nobody ends it


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    directory = tmp_path_factory.mktemp("tls")
    certificate = Certificate(str(directory / "cert.pem"), str(directory / "key.pem"))
    certificates.create(certificate, ["localhost"])
    created = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    created.load_cert_chain(*certificate)
    return created


@pytest.fixture
def served(context: ssl.SSLContext) -> Iterator[Callable[[Callable[[socket.socket], None]], ssl.SSLSocket]]:
    """served(client) -> the server's end of a connection, after the handshake; `client` runs in a thread."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threads: list[threading.Thread] = []
        ends: list[socket.socket] = []

        def serve(client: Callable[[socket.socket], None]) -> ssl.SSLSocket:
            near = socket.create_connection(listener.getsockname())
            far, _ = listener.accept()
            threads.append(threading.Thread(target=client, args=(near,)))
            threads[-1].start()
            ends.extend((near, context.wrap_socket(far, server_side=True)))
            ends[-1].setblocking(False)
            return ends[-1]  # type: ignore[return-value]  # what was just put there

        yield serve
        for end in ends:
            end.close()
        for thread in threads:
            thread.join(30)


def read(sock: ssl.SSLSocket) -> bytes:
    """What comes next."""
    ends_at = time.monotonic() + 60
    while time.monotonic() < ends_at:
        try:
            return bounded(sock, partial(sock.recv, 65536))
        except ssl.SSLWantReadError:
            time.sleep(0.001)
    raise AssertionError("nothing came")


def test_keys_without_end_are_an_end(
    served: Callable[..., ssl.SSLSocket], capfd: pytest.CaptureFixture[str]
) -> None:
    sent = threading.Event()

    def client(sock: socket.socket) -> None:
        attacker = Client(sock)
        data = attacker.updates(MANY)
        sent.set()
        try:
            sock.sendall(data)
        except OSError:
            return

    sock = served(client)
    assert sent.wait(60)
    tls_reads._logged_at = -tls_reads.LOGGED_S
    number = sock.fileno()
    assert read(sock) == b""
    assert sock.fileno() == number  # it is still there to be closed
    assert "without data" in capfd.readouterr().err + capfd.readouterr().out


def test_without_a_free_descriptor_it_is_tried_again(
    served: Callable[..., ssl.SSLSocket], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread that inspects the reads goes on: nobody else would end the next one."""
    end, failures = tls_reads._end, [OSError(errno.EMFILE, "none is free")] * 2

    def fails_at_first(sock: ssl.SSLSocket) -> None:
        if failures:
            raise failures.pop()
        end(sock)

    monkeypatch.setattr(tls_reads, "_end", fails_at_first)
    sent = threading.Event()

    def client(sock: socket.socket) -> None:
        data = Client(sock).updates(MANY)
        sent.set()
        try:
            sock.sendall(data)
        except OSError:
            return

    sock = served(client)
    assert sent.wait(60)
    assert read(sock) == b""
    assert not failures


def test_some_changes_of_keys_are_in_order(served: Callable[..., ssl.SSLSocket]) -> None:
    def client(sock: socket.socket) -> None:
        attacker = Client(sock)
        sock.sendall(attacker.updates(50))
        attacker.tls.SSL_write(attacker.connection, b"data", 4)
        sock.sendall(attacker._take())

    assert read(served(client)) == b"data"


def test_whoever_only_takes_long_is_left_alone(served: Callable[..., ssl.SSLSocket]) -> None:
    """It is the processor time that counts; a plain connection is not looked at."""
    sock = served(lambda near: Client(near) and None)

    def wait() -> bytes:
        time.sleep(10 * tls_reads.PERIOD_S + tls_reads.LONGEST_S)
        return b"late"

    assert bounded(sock, wait) == b"late"
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.send(b"plain")
        assert bounded(ours, partial(ours.recv, 100)) == b"plain"
    assert tls_reads._reading == {}
