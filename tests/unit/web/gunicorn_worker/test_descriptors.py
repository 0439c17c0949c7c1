"""Connections on which descriptors may arrive: none is received, and no close waits for one."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import pytest
from hostile.attackers.crowds import clogged, send_last_copy

from svc import descriptors
from svc.descriptors import SO_PASSRIGHTS, Brought, GuardedSocket, guarded

AT_ONCE_S = 2


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, GuardedSocket]]:
    """A client's end, and ours as on a kernel that lets descriptors through."""
    theirs, ours = socket.socketpair(socket.AF_UNIX)
    ours.settimeout(5)
    sock = guarded(ours)
    assert isinstance(sock, GuardedSocket)
    with theirs, sock:
        yield theirs, sock


def test_bytes_arrive_as_on_any_socket(ends: tuple[socket.socket, GuardedSocket]) -> None:
    theirs, ours = ends
    theirs.sendall(b"one")
    theirs.sendall(b"two")
    assert (ours.recv(2), ours.recv(10, socket.MSG_PEEK), ours.recv(10)) == (b"on", b"etwo", b"etwo")
    ours.setblocking(False)
    with pytest.raises(BlockingIOError):
        ours.recv(10)
    theirs.shutdown(socket.SHUT_WR)
    assert ours.recv(10) == b""


def test_what_brings_descriptors_is_not_received(ends: tuple[socket.socket, GuardedSocket]) -> None:
    theirs, ours = ends
    before = len(os.listdir("/proc/self/fd"))
    theirs.sendall(b"first")
    with open(os.devnull) as file:
        socket.send_fds(theirs, [b"second"], [file.fileno()])
    for _ in range(2):
        with pytest.raises(Brought):
            ours.recv(100)
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("first", [b"", b"a request before"])
def test_nobody_waits_in_a_close(ends: tuple[socket.socket, GuardedSocket], first: bytes) -> None:
    theirs, ours = ends
    near, far = clogged()
    with far:
        theirs.sendall(first)
        send_last_copy(theirs, b"x", near)
        began = time.monotonic()
        ours.close()
        assert ours.fileno() < 0
        assert theirs.recv(10) == b"", "the client sees the end at once"
        far.settimeout(10)
        while far.recv(1 << 20):
            pass
        assert time.monotonic() - began < AT_ONCE_S, "let go, not kept open"


def test_where_the_kernel_refuses_them_a_connection_is_left_alone() -> None:
    theirs, ours = socket.socketpair(socket.AF_UNIX)
    with theirs, ours:
        try:
            ours.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
        except OSError:
            pytest.skip("this kernel has no SO_PASSRIGHTS")
        assert descriptors.guarded(ours) is ours
    with socket.socket() as tcp:
        assert descriptors.guarded(tcp) is tcp
