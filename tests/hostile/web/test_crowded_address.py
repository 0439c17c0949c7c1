"""Large, slow and silent requests over TLS by a stranger or a user of this host: others there do not wait.

Everybody comes by 127.0.0.1, as through `ssh -L`.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from e2e.installation import Call, Service
from e2e.surroundings import in_database, must
from hostile.attackers.raw import Answer, ask, becoming, connect_tls, request
from hostile.conftest import SECRET
from hostile.test_hostile_agent import figures, lab, named
from hostile.web.test_live_clients import cpu_s

__all__ = ["lab"]  # the fixture

STRANGER, USER, OTHER = "tsz-carol", "tsz-mallory", "tsz-alice"
SAMPLES = 8
QUICK_S = 2.0  # what others wait for at most, on a busy host; it was 5 to 27


@pytest.fixture
def port(service: Service) -> int:
    """Of the TLS listener."""
    return int(service.env["SVC_PORT"])


def connection(port: int, user: str) -> ssl.SSLSocket:
    """A connection of that Linux user's by loopback."""
    with becoming(user):
        sock = socket.create_connection(("127.0.0.1", port), timeout=30)
    return connect_tls(port, sock)


def log_in(port: int, user: str, name: str, password: str) -> Answer:
    """A login by loopback."""
    body = json.dumps({"username": name, "password": password}).encode()
    return ask(connection(port, user), request("POST", "/api/auth/login", body))


def others_wait_s(port: int, user: str = OTHER) -> float:
    """The longest time of some requests of another user's."""
    taken = []
    for _ in range(SAMPLES):
        began = time.monotonic()
        assert ask(connection(port, user), request("GET", "/api/health")).status == 200
        taken.append(time.monotonic() - began)
        time.sleep(0.05)
    return max(taken)


@contextlib.contextmanager
def many(count: int, act: Callable[[], object]) -> Iterator[None]:
    """The block, while so many threads do that again and again."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            with contextlib.suppress(OSError):
                act()
            time.sleep(0.05)  # for the client that measures, which is the same process

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.depth("merge", "a crowd that is measured for a minute")
def test_logins_of_ninety_thousand_keys(service: Service, port: int) -> None:
    keys = json.dumps({f"k{number}": 1 for number in range(60_000)}).encode()
    data = request("POST", "/api/auth/login", keys)
    pid = named(service, "tls")
    resident, used, answered = figures(pid)[2], cpu_s(pid), []
    with many(16, lambda: answered.append(ask(connection(port, STRANGER), data).status)):
        waited = others_wait_s(port)
    grown, each = figures(pid)[2] - resident, (cpu_s(pid) - used) / len(answered)
    print(f"others wait for {waited:.1f} s, each takes {each * 1000:.0f} ms, it grew by {grown} KiB")
    assert each < 0.1, "it was half a second"
    assert waited < 2 * QUICK_S
    assert grown < 20_000


@pytest.mark.depth("merge", "a crowd that is measured for a minute")
def test_bodies_that_come_a_byte_at_a_time(port: int) -> None:
    """A small one, a large one and one in chunks: of a stranger, who has the same address."""
    heads = [
        request("POST", "/api/auth/login", b"", *more, "Content-Type: application/json").replace(
            b"Content-Length: 0\r\n", b""
        )
        for more in (["Content-Length: 60"], ["Content-Length: 60000"], ["Transfer-Encoding: chunked"])
    ]
    with ExitStack() as stack:
        socks = [stack.enter_context(connection(port, STRANGER)) for _ in range(60)]
        for number, sock in enumerate(socks):
            sock.sendall(heads[number % len(heads)])
        time.sleep(1.5)  # longer than a small body is awaited without a thread
        for sock in socks:
            with contextlib.suppress(OSError):
                sock.sendall(b"1")
        waited = others_wait_s(port)
        own = others_wait_s(port, STRANGER)
    print(f"others wait for {waited * 1000:.0f} ms, their own client for {own * 1000:.0f} ms")
    assert waited < QUICK_S
    assert own < QUICK_S


def test_a_strangers_wrong_logins_keep_nobody_from_a_first_login(service: Service, port: int) -> None:
    for table in ("login_failures", "login_places"):
        in_database(service.env, f"DELETE FROM {table}")
    tried = [log_in(port, STRANGER, f"nobody{number}", "wrong") for number in range(7)]
    assert tried[-1].status == 429
    assert log_in(port, OTHER, OTHER, SECRET).status == 200
    for table in ("login_failures", "login_places"):
        in_database(service.env, f"DELETE FROM {table}")


@pytest.fixture
def token(mallory: Call) -> Iterator[str]:
    """A token of Mallory's."""
    made = must(mallory("token", "create", "--name", "crowd", "--json")).json()
    yield made["secret"]
    mallory("token", "revoke", made["id"], "--yes")


def test_commands_that_never_begin_and_streams_that_nobody_reads(
    service: Service, port: int, lab: str, token: str
) -> None:
    def opened(path: str, *headers: str) -> bytes:
        return request("GET", path, b"", f"Authorization: Bearer {token}", *headers).replace(
            b"Connection: close\r\n", b"" if headers else b"Connection: close\r\n"
        )

    upgrade = (
        "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: svc-exec.1",
    )  # fmt: skip
    with ExitStack() as stack:
        for number in range(40):
            sock = stack.enter_context(connection(port, USER))
            sock.sendall(opened(f"/api/workspaces/{lab}/exec/stream", *upgrade))
            if number == 0:
                assert b" 101 " in sock.recv(4096)
        waited = others_wait_s(port)
        own = others_wait_s(port, USER)
    print(f"others wait for {waited * 1000:.0f} ms, their own client for {own * 1000:.0f} ms")
    assert waited < QUICK_S
    assert own < QUICK_S


@pytest.mark.parametrize("name", ["tls", "unix"])
def test_long_paths_do_not_fill_the_log(service: Service, port: int, name: str) -> None:
    path = "/api/" + "%01" * 2500
    before, began = os.path.getsize(service.log), time.monotonic()

    def flood() -> None:
        sock = connection(port, STRANGER) if name == "tls" else _to_host(service)
        with sock:
            for _ in range(50):
                sock.sendall(request("GET", path).replace(b"Connection: close\r\n", b""))
                if b" 40" not in sock.recv(65536):
                    return

    with many(4, flood):
        time.sleep(4)
    grown = os.path.getsize(service.log) - before
    rate = grown / (time.monotonic() - began)
    print(f"the log grows by {rate / 1024:.0f} KiB a second")
    assert rate < 64 * 1024 + 256 * 1024 / 4  # with what a process may write at once


def _to_host(service: Service) -> socket.socket:
    with becoming(pwd.getpwnam(STRANGER).pw_name):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(30)
        sock.connect(service.env["SVC_SOCKET"])
    return sock
