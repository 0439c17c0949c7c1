"""A user counts with the user's subordinate uids; everybody without account counts as one."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc import clients
from svc.clients import STRANGERS, SocketOwners, Uids
from svc_helper.wire import sock_diag

SUBUID = "demo:100000:65536\n1002:300000:65536\nnobodys:500000:65536\ndemo:900000:10\nbroken:line\n:::\n"


@pytest.fixture
def uids(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Uids:
    """`demo` (1001) and `other` (1002) have accounts."""
    monkeypatch.setattr(clients, "CHECK_S", 0)
    (tmp_path / "enrolled").write_text("demo 1001 user\nother 1002 administrator\n")
    (tmp_path / "subuid").write_text(SUBUID)
    return Uids(str(tmp_path / "enrolled"), str(tmp_path / "subuid"))


@pytest.mark.parametrize(
    ("uid", "client"),
    [
        (1001, "uid 1001"),
        (100000, "uid 1001"),
        (165535, "uid 1001"),
        (900009, "uid 1001"),
        (1002, "uid 1002"),
        (300000, "uid 1002"),
        (0, "uid 0"),
        (99999, STRANGERS),
        (165536, STRANGERS),
        (500000, STRANGERS),
        (1003, STRANGERS),
        (4294967295, STRANGERS),
    ],
)
def test_whose_client_a_uid_is(uids: Uids, uid: int, client: str) -> None:
    assert uids.client_of(uid) == client


def test_the_files_are_read_again_when_they_change(uids: Uids, tmp_path: Path) -> None:
    assert uids.client_of(1003) == STRANGERS
    (tmp_path / "enrolled").write_text("demo 1001 user\nthird 1003 user\n")
    assert (uids.client_of(1003), uids.client_of(1002)) == ("uid 1003", STRANGERS)
    (tmp_path / "subuid").write_text("third:100000:65536\n")
    assert (uids.client_of(100000), uids.client_of(900000)) == ("uid 1003", STRANGERS)


def test_without_files_the_service_itself_and_root_are_known(tmp_path: Path) -> None:
    uids = Uids(str(tmp_path / "none"), str(tmp_path / "neither"))
    me = os.geteuid()
    assert (uids.client_of(me), uids.client_of(me + 1)) == (f"uid {me}", STRANGERS)


@pytest.fixture
def owners() -> Iterator[SocketOwners]:
    """As the TLS listener has it."""
    with sock_diag.connected() as netlink:
        yield SocketOwners(netlink)


@pytest.mark.parametrize(("host", "peer"), [("127.0.0.1", "127.0.0.1"), ("", "127.0.0.1"), ("", "::1")])
def test_a_loopback_connection_tells_its_user(owners: SocketOwners, host: str, peer: str) -> None:
    family = socket.AF_INET if host else socket.AF_INET6
    with socket.create_server((host, 0), family=family, dualstack_ipv6=not host) as listener:
        client = socket.create_connection((peer, listener.getsockname()[1]))
        accepted, address = listener.accept()
        with accepted:
            assert owners.uid_of(address, accepted.getsockname()) == os.getuid()
            assert owners.uid_of((address[0], 1), accepted.getsockname()) is None
            client.close()
            assert owners.uid_of(address, accepted.getsockname()) is None


def test_a_late_reply_is_not_taken_for_the_next(owners: SocketOwners) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()),
        listener.accept()[0] as accepted,
    ):
        addresses = accepted.getpeername(), accepted.getsockname()
        owners.netlink.send(sock_diag.query(99, *addresses))
        assert owners.uid_of(*addresses) == os.getuid()


def test_without_the_protocol_nobody_is_told_apart() -> None:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        assert SocketOwners(ours).uid_of(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
