"""Whose connection it is: what the kernel tells of the client's end, and what it must not be taken for."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
from collections.abc import Iterator

import pytest

from svc_helper.agent.calls import Failure
from svc_helper.shim.clients import Clients, mapped_ids

OWNER = 4242
SUBORDINATE = (100_000, 65_536)
ABORT = struct.pack("ii", 1, 0)
CONNECT = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.recv(1)"
TCP_REPAIR = 19
NOBODY_ELSES = "127.0.77.1"  # an address whose ports no other process takes meanwhile
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: sockets of other users")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """A port."""
    with socket.create_server(("127.0.0.1", 0)) as created:
        created.settimeout(10)
        yield created


@pytest.fixture
def clients() -> Iterator[Clients]:
    """For a port of this very user."""
    created = Clients(os.getuid(), ())
    yield created
    created.close()


def accepts(clients: Clients, listener: socket.socket) -> bool:
    """Whether the next connection of the listener would be accepted."""
    outside, address = listener.accept()
    with outside:
        return clients.accepts(outside, address, listener.getsockname())


def test_the_owner_in_each_way_to_connect(clients: Clients, listener: socket.socket) -> None:
    port = listener.getsockname()[1]
    with socket.create_connection(("127.0.0.1", port)):
        assert accepts(clients, listener)
    with socket.create_connection(("127.0.0.1", port), source_address=("127.8.8.8", 0)):
        assert accepts(clients, listener)
    with socket.socket(socket.AF_INET6) as mapped:
        mapped.connect(("::ffff:127.0.0.1", port))
        assert accepts(clients, listener)
    with socket.create_connection(("127.0.0.1", port)) as finished:
        finished.sendall(b"all that there is")
        finished.shutdown(socket.SHUT_WR)  # as `nc -N` does
        assert accepts(clients, listener)


def test_a_client_that_has_gone_is_nobody(clients: Clients, listener: socket.socket) -> None:
    """The kernel says uid 0 of some of these."""
    port = listener.getsockname()[1]
    closed = socket.create_connection(("127.0.0.1", port))
    closed.sendall(b"fire and forget")
    closed.close()
    assert not accepts(clients, listener)
    aborted = socket.create_connection(("127.0.0.1", port))
    aborted.sendall(b"x")
    aborted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    aborted.close()
    assert not accepts(clients, listener)


@needs_root
def test_whoever_takes_the_place_of_one_that_has_gone_silently_is_not_the_client(
    clients: Clients, listener: socket.socket
) -> None:
    """A closed client is forgotten after a minute, or (here) at once; ours still counts as connected.

    A lookup without a connected socket finds a listening one.
    """
    target = listener.getsockname()
    for listens in (True, False):
        forgotten = socket.create_connection(target, source_address=(NOBODY_ELSES, 0))
        place = forgotten.getsockname()
        forgotten.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        forgotten.close()
        with socket.socket() as other:
            other.bind(place)
            if listens:
                other.listen()
            else:
                other.setblocking(False)
                other.connect_ex(target)  # answered by a reset once it is found out
            assert not accepts(clients, listener)


def test_whoever_connects_from_the_place_of_one_that_has_gone_is_not_the_client(
    clients: Clients, listener: socket.socket
) -> None:
    """A stranger sends and breaks off while the shim is busy; then somebody else gets the same port."""
    target = listener.getsockname()
    aborted = socket.create_connection(target, source_address=(NOBODY_ELSES, 0))
    place = aborted.getsockname()
    aborted.sendall(b"POST /api/shutdown")
    aborted.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, ABORT)
    aborted.close()
    with socket.create_connection(target, source_address=place):
        assert not accepts(clients, listener), "the first in the queue is the one that broke off"
        assert accepts(clients, listener)


def test_a_connection_of_another_listener_is_not_ours(clients: Clients, listener: socket.socket) -> None:
    with socket.create_connection(listener.getsockname()):
        outside, address = listener.accept()
        with outside:
            host, port = listener.getsockname()
            assert not clients.accepts(outside, address, (host, port ^ 1))
            assert not clients.accepts(outside, (address[0], address[1] ^ 1), (host, port))
            assert clients.accepts(outside, address, (host, port))


def test_a_reply_to_another_query_is_none_and_the_next_is_asked_anew(
    clients: Clients, listener: socket.socket
) -> None:
    with socket.create_connection(listener.getsockname()):
        assert accepts(clients, listener)
    assert clients._netlink is not None
    clients._netlink.send(struct.pack("=IHHII", 16, 20, 1, 77, 0))  # refused, and its reply waits
    with socket.create_connection(listener.getsockname()), socket.create_connection(listener.getsockname()):
        assert [accepts(clients, listener) for _ in range(2)] == [False, True]


@needs_root
@pytest.mark.parametrize(
    ("uid", "accepted"),
    [
        (OWNER, True), (0, True), (SUBORDINATE[0], True), (sum(SUBORDINATE) - 1, True),
        (OWNER + 1, False), (OWNER - 1, False), (SUBORDINATE[0] - 1, False), (sum(SUBORDINATE), False),
        (65534, False), (2**32 - 2, False),
    ],
)  # fmt: skip
def test_uids(listener: socket.socket, uid: int, accepted: bool) -> None:
    clients = Clients(OWNER, (SUBORDINATE, (65_530, 10)))
    process = subprocess.Popen(
        ["/usr/bin/python3", "-c", CONNECT, str(listener.getsockname()[1])],
        user=uid, group=uid, extra_groups=[], cwd="/",
    )  # fmt: skip
    try:
        assert accepts(clients, listener) is accepted
    finally:
        process.kill()
        process.wait()
        clients.close()


def test_a_kernel_that_does_not_tell(clients: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    clients.require()
    monkeypatch.setattr("svc_helper.wire.sock_diag._NETLINK_SOCK_DIAG", 31)  # no such protocol
    clients.require()  # it was found out before
    deaf = Clients(os.getuid(), ())
    with pytest.raises(Failure, match="modprobe tcp_diag"):
        deaf.require()


def test_the_ids_of_a_namespace() -> None:
    assert mapped_ids(os.getpid())[0][1] > 1
    assert mapped_ids(2**22 + 1) == ()
