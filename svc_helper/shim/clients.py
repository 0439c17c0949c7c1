"""Whose connection a port got: the kernel tells the uid of the client's socket (sock_diag(7)).

Owner, the owner's subordinate ids and root are accepted: the client is a process
of the owner's, of the owner's containers, or of one that may act for the owner
anyway (sshd connects for `ssh -L` as the user who has logged in).

Everything unclear is refused. The client's socket must exist and be connected to ours
(svc_helper.wire.sock_diag), and ours must still be connected after the reply: until then
nobody else can have the client's address and port.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

from svc_helper.agent.calls import Failure
from svc_helper.wire import sock_diag

_LOOPBACK = "127.0.0.1"
_SELF_S = 1.0  # for a connection to itself, which takes microseconds
_ESTABLISHED, _CLOSE_WAIT = 1, 8
_OURS = (_ESTABLISHED, _CLOSE_WAIT)
_NOBODY = 65534  # also read for an id that has no name in this user namespace
_RANGES_MAX = 64 * 1024  # bytes of a uid_map

Ranges = tuple[tuple[int, int], ...]  # first id, number of ids


def mapped_ids(pid: int) -> Ranges:
    """The uids that a process's user namespace may use, as this process sees them; none if it has ended."""
    ranges = []
    with suppress(OSError, ValueError), open(f"/proc/{pid}/uid_map", encoding="ascii") as file:
        for line in file.read(_RANGES_MAX).splitlines():
            _, first, count = (int(field) for field in line.split())
            ranges.append((first, count))
    return tuple(ranges)


class Clients:
    """Tells whether a client may use a port whose access is `owner`."""

    def __init__(self, uid: int, ranges: Ranges) -> None:
        """`uid` is the owner's, `ranges` are the owner's subordinate ids."""
        self._uid, self._ranges = uid, ranges
        self._netlink: socket.socket | None = None
        self._sequence = 0
        self._works = False

    def require(self) -> None:
        """Raise Failure unless the kernel answers: without that an owner's port would refuse its owner."""
        if self._works:
            return
        with socket.create_server((_LOOPBACK, 0)) as listener, socket.socket() as client:
            for sock in (listener, client):
                sock.settimeout(_SELF_S)
            client.connect(listener.getsockname())
            address = None
            while address != client.getsockname():  # others may find the listener too
                outside, address = listener.accept()
                with outside:
                    self._works = self.accepts(outside, address, listener.getsockname())
        if not self._works:
            raise Failure("failed", "the kernel does not tell whose connection it is: sudo modprobe tcp_diag")

    def accepts(self, outside: socket.socket, client: tuple[str, int], ours: tuple[str, int]) -> bool:
        """Whether this accepted IPv4 connection, of these two addresses, is one of the owner's."""
        try:
            uid = self._ask(client, ours)
            state = outside.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
        except (OSError, struct.error):
            self.close()  # a reply that comes late would be taken for the next one's
            return False
        return uid is not None and state in _OURS and self._is_owners(uid)

    def _is_owners(self, uid: int) -> bool:
        if uid in (0, self._uid):
            return True
        return uid != _NOBODY and any(first <= uid < first + count for first, count in self._ranges)

    def _ask(self, client: tuple[str, int], ours: tuple[str, int]) -> int | None:
        """The uid of the socket that is connected from `client` to us; None without one. Raises OSError."""
        if self._netlink is None:
            self._netlink = sock_diag.connected()
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        return sock_diag.ask(self._netlink, self._sequence, client, ours)

    def close(self) -> None:
        """Close the netlink socket; the next query opens another one."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None
