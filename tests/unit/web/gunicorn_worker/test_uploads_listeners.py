"""Bundles through both real listeners, the TLS one too: the largest, the slow, the cut and the lying.

Memory stays, every refusal is heard, and nothing is left: no row, no file, no descriptor.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from unit.bundling import context, opener, written
from unit.configuring import configured
from unit.web.gunicorn_worker.test_listeners import Answer, Served, served, socket_folder  # noqa: F401  (fixtures)
from unit.web.transferring import soon

from svc.db import connect
from svc.domain.accounts import sessions, users
from svc.domain.templates import bundles
from svc.domain.templates.bundles import ContextFile
from svc.host.secret import read_secret
from svc.limits import BUNDLE_MAX, BUNDLE_MEMBER_MAX
from svc.settings import Settings
from svc.tls import certificates
from svc.tls.certificates import Certificate
from svc.web.callers.credentials import COOKIE, HEADER

MIB = 1024 * 1024
SMALL = written({"name": "small", "source": {"type": "dockerfile"}}, b"FROM registry.example/a:1\n", {})
TIMEOUT_S = 0.5  # for each part of a body
GLOBAL = "/api/templates/import?scope=global"


class Endpoint:
    """A listener, and how its superuser comes in."""

    def __init__(
        self, endpoint: Served, headers: list[str], trust: ssl.SSLContext | None, folder: Path
    ) -> None:
        self.endpoint, self.headers, self.trust, self.folder = endpoint, headers, trust, folder

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        """A connection."""
        with socket.socket(self.endpoint.listener.family) as plain:
            plain.settimeout(30)
            plain.connect(self.endpoint.listener.getsockname())
            if self.trust is None:
                yield plain
                return
            with self.trust.wrap_socket(plain, server_hostname="localhost") as sock:
                yield sock

    def head(self, method: str, target: str, *more: str) -> bytes:
        """A request's head."""
        lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *self.headers, *more]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def post(self, *more: str) -> bytes:
        """An import's head."""
        return self.head("POST", GLOBAL, "Content-Type: application/x-tar", *more)

    def peak(self) -> int:
        """The most memory that the listener has had, in bytes."""
        lines = Path(f"/proc/{self.endpoint.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) * 1024

    def staged(self) -> list[str]:
        """The unnamed files that the listener holds open."""
        found = []
        for link in Path(f"/proc/{self.endpoint.pid}/fd").iterdir():
            with contextlib.suppress(OSError):
                found.append(os.readlink(link))
        return [name for name in found if name.startswith(str(self.folder)) and name.endswith("(deleted)")]


@pytest.fixture(params=["unix", "guarded unix", "tls"])
def endpoint(
    request: Any, served: Any, db: str, settings: Settings, tmp_path: Path, needs_root: None,  # noqa: F811  (fixtures)
    monkeypatch: pytest.MonkeyPatch,
) -> Endpoint:  # fmt: skip
    """Each listener in turn, with a superuser on it; patience is short."""
    monkeypatch.setattr("svc.web.gunicorn_worker.fair_worker.READING_S", TIMEOUT_S)
    configured(registries_path=str(tmp_path / "registries.json"))
    connect.open_database(db)
    configured(secret=read_secret(settings.secret_file))
    me = users.find_by_uid(os.getuid())
    assert me is not None
    _, secrets = sessions.begin(me.id, "127.0.0.1")
    connect.close_database()
    if request.param != "tls":
        unix: Served = served("unix")
        if request.param == "guarded unix":
            unix.let_descriptors_through()
        return Endpoint(unix, [], None, tmp_path)
    certificate = Certificate(str(tmp_path / "tls" / "cert.pem"), str(tmp_path / "tls" / "key.pem"))
    certificates.create(certificate, ["localhost"])
    headers = [f"Cookie: {COOKIE}={secrets.cookie}", f"{HEADER}: {secrets.header}"]
    trust = ssl.create_default_context(cafile=certificate.chain)
    return Endpoint(served("tls", certificate=certificate), headers, trust, tmp_path)


@pytest.fixture(scope="module")
def largest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of nearly BUNDLE_MAX, of random bytes."""
    first, second = os.urandom(BUNDLE_MEMBER_MAX), os.urandom(BUNDLE_MAX - BUNDLE_MEMBER_MAX - 16 * 1024)
    files = [
        ContextFile("first", False, opener(first), len(first)),
        ContextFile("second", True, opener(second), len(second)),
        *context({"small": (b"s", False)}),
    ]
    path = tmp_path_factory.mktemp("large") / "bundle.tar"
    with open(path, "wb") as file:
        bundles.write(file, {"name": "large", "source": {"type": "dockerfile"}}, b"FROM a.b/c\n", files)
    return path


def answered(sock: Any) -> Answer:
    """What the listener says."""
    data = b""
    with contextlib.suppress(ConnectionResetError, ssl.SSLEOFError, BrokenPipeError):
        while part := sock.recv(1 << 20):
            data += part
    head, _, body = data.partition(b"\r\n\r\n")

    return Answer(int(head.split()[1]), json.loads(body), head.decode()) if head else Answer(0, {}, "")


def rows(db: str) -> int:
    """How much is in the database of templates and their files."""
    connect.open_database(db)
    tables = ("templates", "files", "context_files")
    count = sum(connect.database.execute_sql(f"SELECT count(*) FROM {one}").fetchone()[0] for one in tables)
    connect.close_database()
    return count


def test_the_largest_goes_in_and_comes_out(endpoint: Endpoint, largest: Path) -> None:
    """ "Memory stays bounded on both sides": 64 MiB through a listener cost it a few."""
    with endpoint.connected() as sock:  # what it loads for the first one is no cost of a transfer
        sock.sendall(endpoint.post(f"Content-Length: {len(SMALL)}") + SMALL)
        assert answered(sock).status == 201
    before, size = endpoint.peak(), largest.stat().st_size
    assert BUNDLE_MAX - MIB < size <= BUNDLE_MAX
    began = time.monotonic()
    with endpoint.connected() as sock, open(largest, "rb") as file:
        sock.sendall(endpoint.post(f"Content-Length: {size}"))
        while part := file.read(1 << 18):
            sock.sendall(part)
        answer = answered(sock)
    assert (answer.status, answer.body["status"]) == (201, "disabled"), answer.body
    sent, began = time.monotonic() - began, time.monotonic()
    with endpoint.connected() as sock, sock.makefile("rb") as received, open(largest, "rb") as file:
        sock.sendall(endpoint.head("GET", f"/api/templates/{answer.body['id']}/export"))
        while received.readline() not in (b"\r\n", b""):
            pass
        while part := received.read(1 << 18):
            assert part == file.read(len(part))
        assert file.read(1) == b""
    grown = endpoint.peak() - before
    print(f"import {sent:.2f} s, export {time.monotonic() - began:.2f} s, {grown >> 20} MiB")
    assert grown < 16 * MIB
    assert soon(lambda: not endpoint.staged())


def chunked(*parts: bytes) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts)


def test_more_than_a_bundle_may_be(endpoint: Endpoint, db: str) -> None:
    """Announced: refused at once. In chunks without end: where the limit is. Honest chunks are fine."""
    with endpoint.connected() as sock:
        sock.sendall(endpoint.post("Transfer-Encoding: chunked"))
        sock.sendall(chunked(SMALL[:100], SMALL[100:]) + b"0\r\n\r\n")
        assert answered(sock).status == 201
    before = rows(db)
    with endpoint.connected() as sock:
        sock.sendall(endpoint.post(f"Content-Length: {BUNDLE_MAX + 1}"))
        assert answered(sock).code == "too_large"
    with endpoint.connected() as sock:
        sock.sendall(endpoint.post("Transfer-Encoding: chunked"))
        part = chunked(bytes(MIB))
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLError):
            for _ in range(2 * BUNDLE_MAX // MIB):
                sock.sendall(part)
        assert endpoint.trust or answered(sock).code == "too_large"
    assert (rows(db), soon(lambda: not endpoint.staged())) == (before, True)


def test_what_does_not_come_whole_leaves_nothing(endpoint: Endpoint, db: str) -> None:
    before, files = rows(db), set(os.listdir(endpoint.folder))
    length = f"Content-Length: {len(SMALL) + 512}"
    for framing, sent, end in (
        (length, SMALL, "hung up"),
        (length, SMALL, "half closed"),
        (length, SMALL, "silent"),
        ("Transfer-Encoding: chunked", chunked(SMALL)[:-700], "half closed"),
        ("Transfer-Encoding: chunked", chunked(SMALL), "half closed"),
    ):
        began = time.monotonic()
        with endpoint.connected() as sock:
            sock.sendall(endpoint.post(framing) + sent)
            if end == "silent":  # its patience ends it
                answered(sock)
                assert TIMEOUT_S / 2 < time.monotonic() - began < 5
            elif end == "half closed" and endpoint.trust is None:
                sock.shutdown(socket.SHUT_WR)
                assert answered(sock).code == "invalid_request"
        assert soon(lambda: not endpoint.staged())
    assert rows(db) == before
    assert set(os.listdir(endpoint.folder)) - files <= {"svc.db-wal", "svc.db-shm"}
    with endpoint.connected() as sock:  # the listener goes on
        sock.sendall(endpoint.post(f"Content-Length: {len(SMALL)}") + SMALL)
        assert answered(sock).status == 201
    assert soon(lambda: not endpoint.staged())  # nor what was read after its sender had gone


def test_a_slow_body_is_taken_as_long_as_it_comes(endpoint: Endpoint) -> None:
    """Each part has its patience; a sender that is slow all the time is no slower than that."""
    with endpoint.connected() as sock:
        sock.sendall(endpoint.post(f"Content-Length: {len(SMALL)}"))
        for at in range(0, len(SMALL), 512):
            sock.sendall(SMALL[at : at + 512])
            time.sleep(0.005)
        assert answered(sock).status == 201
    with endpoint.connected() as sock:
        sock.sendall(endpoint.post(f"Content-Length: {len(SMALL)}"))
        began = time.monotonic()
        with contextlib.suppress(ConnectionResetError, BrokenPipeError, ssl.SSLError):
            for at in range(len(SMALL)):
                sock.sendall(SMALL[at : at + 1])
                time.sleep(0.05)
        assert time.monotonic() - began < 5
    assert soon(lambda: not endpoint.staged())
