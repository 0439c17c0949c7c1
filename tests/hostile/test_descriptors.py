"""Descriptors beside requests: whoever sends what lingers when it is closed delays nobody, on any kernel.

With SO_PASSRIGHTS at 0 the kernel refuses them (Linux 6.16). The same attack is made on a
listener without it, as an older kernel would have it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import socket
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.installation import Call, Service
from hostile.attackers.crowds import HALF_A_HEAD, clogged, crowd, send_last_copy
from hostile.attackers.raw import ask, connect, request
from waiting import until

from svc.server.listeners import SO_PASSRIGHTS

PIDFD_GETFD = 438
MANY = 200  # more than the threads of one client
FAR_ENDS = 40  # whose connections are sent one after the other


def supports_refusal() -> bool:
    """Whether this kernel has SO_PASSRIGHTS."""
    with socket.socket(socket.AF_UNIX) as sock:
        try:
            sock.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS)
        except OSError:
            return False
    return True


@contextlib.contextmanager
def listener_of(service: Service) -> Iterator[socket.socket]:
    """A copy of the supervisor's host socket."""
    libc = ctypes.CDLL(None, use_errno=True)
    pidfd = os.pidfd_open(service.pid)
    try:
        for name in os.listdir(f"/proc/{service.pid}/fd"):
            descriptor = libc.syscall(PIDFD_GETFD, pidfd, int(name), 0)
            try:
                sock = socket.socket(fileno=descriptor)
            except OSError:  # no socket
                os.close(descriptor)
                continue
            with sock:
                if sock.getsockname() == service.env["SVC_SOCKET"]:
                    yield sock
                    return
    finally:
        os.close(pidfd)
    raise AssertionError("the supervisor has no host socket")


@pytest.fixture(params=["refused by the kernel", "let through by the kernel"])
def listening(service: Service, request: pytest.FixtureRequest) -> Iterator[bool]:
    """Whether the kernel lets descriptors through to the listener."""
    if not supports_refusal():
        yield True
        return
    lets_through = request.param == "let through by the kernel"
    with listener_of(service) as listener:
        assert listener.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS) == 0
        listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, lets_through)
        yield lets_through
        listener.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)


def pids_of_listener(service: Service) -> set[int]:
    """The processes of the host socket's listener."""
    return {one.pid for one in service.members() if one.status["Name"] == "svc-unix"}


def took(alice: Call) -> float:
    """The duration of one `svc ws list`."""
    began = time.monotonic()
    assert alice("ws", "list", timeout=60).code == 0
    return time.monotonic() - began


def waiting_in_close(service: Service) -> list[str]:
    """What threads of svc wait for in the kernel, as far as it is the close of a connection."""
    found = []
    for one in service.members():
        for stack in Path(f"/proc/{one.pid}/task").glob("*/stack"):
            with contextlib.suppress(OSError):  # the thread has ended meanwhile
                lines = stack.read_text().splitlines()
                found += [
                    f"{one.args} {line}" for line in lines if "tcp_close" in line or "inet_release" in line
                ]
    return found


def test_nobody_waits_for_descriptors(service: Service, alice: Call, listening: bool) -> None:
    carol = pwd.getpwnam("tsz-carol").pw_uid
    workers = pids_of_listener(service)
    quiet = statistics.median(took(alice) for _ in range(9))
    with crowd(MANY, [HALF_A_HEAD], uid=carol, path=service.env["SVC_SOCKET"], descriptors=True) as held:
        assert held > 20
        meanwhile = [took(alice) for _ in range(15)]
        assert not waiting_in_close(service)
    print(f"ws list: {quiet * 1000:.0f} ms quiet, {statistics.median(meanwhile) * 1000:.0f} ms meanwhile")
    assert max(meanwhile) < 5
    assert statistics.median(meanwhile) < 3 * quiet
    assert pids_of_listener(service) == workers


def test_each_way_to_bring_descriptors_ends_the_connection_at_once(service: Service, listening: bool) -> None:
    """In the head, in a body, after a request that is kept alive, and before anything is read."""
    whole = request("GET", "/api/health").replace(b"Connection: close\r\n", b"")
    body = b"POST /api/templates HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n"
    for first, second in ((b"", b"GET /"), (b"GET /", b"x"), (body, b"{"), (whole, b"G"), (whole, whole)):
        near, far = clogged()
        sock = connect(service.env["SVC_SOCKET"], "tsz-mallory")
        with far, sock:
            sock.settimeout(20)
            if first:
                sock.sendall(first)
            time.sleep(0.05)
            send_last_copy(sock, second, near)
            if listening:
                with contextlib.suppress(OSError):
                    while sock.recv(65536):
                        pass
        assert not waiting_in_close(service)
    until(lambda: not waiting_in_close(service), 10)
    assert ask(connect(service.env["SVC_SOCKET"], "tsz-mallory"), request("GET", "/api/health")).status == 200


def test_what_is_sent_with_descriptors_is_let_go(service: Service, listening: bool) -> None:
    """Each connection that was sent is closed by the kernel soon, not kept by a process of svc."""
    ends = []
    for _ in range(FAR_ENDS):
        near, far = clogged()
        ends.append(far)
        with connect(service.env["SVC_SOCKET"], "tsz-mallory") as sock:
            send_last_copy(sock, b"GET /", near)
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_WR)
                sock.recv(100)
    deadline = time.monotonic() + 30
    for far in ends:
        far.settimeout(max(deadline - time.monotonic(), 0.1))
        with far, contextlib.suppress(ConnectionResetError):
            while far.recv(1 << 20):
                pass
