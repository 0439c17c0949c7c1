"""Whose connection a port got: the kernel tells the uid of the client's socket (sock_diag(7)).

Owner, the owner's subordinate ids and root are accepted: the client is a process
of the owner's, of the owner's containers, or of one that may act for the owner
anyway (sshd connects for `ssh -L` as the user who has logged in).

Everything unclear is refused. The kernel answers a query for a socket that is gone with
uid 0 (TIME_WAIT, or orphaned: before Linux 6.17), or with another socket that
listens on the client's address. So the client's socket must exist (an inode), be
connected to ours, and ours must still be connected after the reply: until then
nobody else can have the client's address and port.
"""

from __future__ import annotations

import socket
import struct
from contextlib import suppress

from svc_helper.agent.calls import Failure

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY: the type of the query and of its reply
_REQUEST = 1  # NLM_F_REQUEST
_LOOPBACK = "127.0.0.1"
_SELF_S = 1.0  # for a connection to itself, which takes microseconds
_NO_COOKIE = b"\xff" * 8
# struct nlmsghdr, then inet_diag_req_v2 up to its states; then both have struct inet_diag_sockid:
_QUERY = struct.Struct("=IHHII BBBBI")
_IDS = struct.Struct("!HH16s16s")  # both ports, both addresses, the client's first; then interface, cookie
# nlmsghdr, then family, state, timer, retransmissions; the ids; expires, both queues, uid, inode
_REPLY = struct.Struct("=IHHII BBBB 48s IIIII")
_REPLY_MAX = 1024
_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT = 1, 4, 5, 8
_CONNECTED = (_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2)  # a client may have finished sending, but we have not
_OURS = (_ESTABLISHED, _CLOSE_WAIT)
_MAPPED = bytes(10) + b"\xff\xff"  # before the IPv4 address of a client's IPv6 socket
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
        netlink = self._netlink
        if netlink is None:
            kind = socket.SOCK_RAW | socket.SOCK_CLOEXEC
            netlink = self._netlink = socket.socket(socket.AF_NETLINK, kind, _NETLINK_SOCK_DIAG)
            netlink.connect((0, 0))  # replies of the kernel only
        self._sequence = (self._sequence + 1) & 0xFFFFFFFF
        source, target = socket.inet_aton(client[0]), socket.inet_aton(ours[0])
        ids = _IDS.pack(client[1], ours[1], source.ljust(16, b"\0"), target.ljust(16, b"\0"))
        size = _QUERY.size + _IDS.size + 4 + len(_NO_COOKIE)
        head = (size, _BY_FAMILY, _REQUEST, self._sequence, 0)
        query = _QUERY.pack(*head, socket.AF_INET, socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
        netlink.send(query + ids + bytes(4) + _NO_COOKIE)
        reply = netlink.recv(_REPLY_MAX, socket.MSG_DONTWAIT)  # it is there when send() returns
        return self._uid_of(reply, client[1], ours[1], source, target)

    def _uid_of(self, reply: bytes, sport: int, dport: int, source: bytes, target: bytes) -> int | None:
        _, kind, _, sequence, _ = struct.unpack_from("=IHHII", reply)
        if sequence != self._sequence:
            raise OSError("a reply to another query")
        if kind != _BY_FAMILY:  # an error: no such socket
            return None
        *_, family, state, _, _, ids, _, _, _, uid, inode = _REPLY.unpack_from(reply)
        if family == socket.AF_INET6:
            source, target = _MAPPED + source, _MAPPED + target
        expected = _IDS.pack(sport, dport, source.ljust(16, b"\0"), target.ljust(16, b"\0"))
        if state not in _CONNECTED or not inode or ids[: _IDS.size] != expected:
            return None
        return int(uid)

    def close(self) -> None:
        """Close the netlink socket; the next query opens another one."""
        if self._netlink is not None:
            self._netlink.close()
            self._netlink = None
