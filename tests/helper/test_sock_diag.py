"""The uid of a connection's other end: of who is connected to us, and of nobody else."""

from __future__ import annotations

import os
import socket

import pytest

from svc_helper.wire import sock_diag

TCP_OF_NOBODY = ("127.0.0.1", 1)


def test_only_the_end_of_our_own_connection_is_named() -> None:
    with (
        sock_diag.connected() as netlink,
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as client,
        listener.accept()[0] as accepted,
    ):
        client_address, ours = accepted.getpeername(), accepted.getsockname()
        assert sock_diag.ask(netlink, 1, client_address, ours) == os.getuid()
        assert sock_diag.ask(netlink, 2, client_address, TCP_OF_NOBODY) is None
        assert sock_diag.ask(netlink, 3, ours, ours) is None, "a listener is no client"
        client.close()
        assert sock_diag.ask(netlink, 4, client_address, ours) is None


def test_a_reply_to_another_question_is_none() -> None:
    with sock_diag.connected() as netlink:
        netlink.send(sock_diag.query(1, TCP_OF_NOBODY, TCP_OF_NOBODY))
        with pytest.raises(OSError, match="another query"):
            sock_diag.ask(netlink, 2, TCP_OF_NOBODY, TCP_OF_NOBODY)
