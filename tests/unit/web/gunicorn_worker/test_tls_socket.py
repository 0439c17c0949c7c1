"""The failure of one TLS connection stays its own, whatever Python and OpenSSL do with it."""

from __future__ import annotations

import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.web.gunicorn_worker.tls_context import TlsContext

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> ssl.SSLContext:
    directory = tmp_path_factory.mktemp("tls")
    certificate = Certificate(str(directory / "cert.pem"), str(directory / "key.pem"))
    certificates.create(certificate, ["localhost"])
    options = SimpleNamespace(
        certfile=certificate.chain,
        keyfile=certificate.key,
        ca_certs=None,
        cert_reqs=0,
        ciphers=None,
        ssl_context=None,
    )
    default = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    default.load_cert_chain(*certificate)
    options.ssl_context = lambda config, make: default
    return TlsContext(options)()


@contextmanager
def connected(context: ssl.SSLContext) -> Iterator[tuple[ssl.SSLSocket, ssl.SSLSocket]]:
    """The server's and the client's end of one connection, after the handshake, in this thread."""
    ask = ssl.create_default_context()
    ask.check_hostname, ask.verify_mode = False, ssl.CERT_NONE
    with socket.create_server(("127.0.0.1", 0)) as listener:
        plain = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
    plain.setblocking(False)
    accepted.setblocking(False)
    client = ask.wrap_socket(plain, do_handshake_on_connect=False)
    server = context.wrap_socket(accepted, server_side=True, do_handshake_on_connect=False)
    with client, server:
        for end in (client, server, client, server, client):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
        assert client.version() and server.version()
        yield server, client


def reset(client: ssl.SSLSocket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    client.close()
    time.sleep(0.01)


def write(server: ssl.SSLSocket) -> None:
    for _ in range(3):
        server.send(b"x" * 1000)


def read(server: ssl.SSLSocket) -> None:
    for _ in range(3):
        server.recv(1)


@pytest.mark.parametrize("fail", [write, read, ssl.SSLSocket.unwrap, lambda server: server.unwrap()])
@pytest.mark.parametrize("reset_at", ["at once", "after a write"])
def test_the_next_connection_of_the_thread_wants_to_read(
    context: ssl.SSLContext, fail: Callable[[ssl.SSLSocket], None], reset_at: str
) -> None:
    with connected(context) as (server, client):
        if reset_at == "after a write":
            client.send(b"unread")
        reset(client)
        for _ in range(3):
            with suppress(OSError):
                fail(server)
    with connected(context) as (server, client):
        with pytest.raises(ssl.SSLWantReadError):
            server.recv(1)
        client.send(b"a")
        time.sleep(0.01)
        assert server.recv(10) == b"a"


def test_a_handshake_that_fails_stays_its_own_too(context: ssl.SSLContext) -> None:
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x00\x05nonsense", b""):
        near, far = socket.socketpair()
        far.setblocking(False)
        with near, context.wrap_socket(far, server_side=True, do_handshake_on_connect=False) as server:
            near.sendall(said)
            near.close()
            with pytest.raises(OSError):
                server.do_handshake()
    with connected(context) as (server, _), pytest.raises(ssl.SSLWantReadError):
        server.recv(1)
