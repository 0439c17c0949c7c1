"""Whose socket a loopback connection comes from: the kernel tells the uid of the client's end (sock_diag(7)).

The kernel answers a query for a socket that is gone with uid 0 (TIME_WAIT, or orphaned: before Linux
6.17), or with another socket that listens on the client's address. So the client's socket must exist
(an inode) and be connected to ours. A socket of ours asks about the network namespace in which it was made.
"""

from __future__ import annotations

import socket
import struct

_NETLINK_SOCK_DIAG = 4
_BY_FAMILY = 20  # SOCK_DIAG_BY_FAMILY: the type of the query and of its reply
_REQUEST = 1  # NLM_F_REQUEST
_NO_COOKIE = b"\xff" * 8
# struct nlmsghdr, then inet_diag_req_v2 up to its states; then both have struct inet_diag_sockid:
_QUERY = struct.Struct("=IHHII BBBBI")
_IDS = struct.Struct("!HH16s16s")  # both ports, both addresses, the client's first; then interface, cookie
# nlmsghdr, then family, state, timer, retransmissions; the ids; expires, both queues, uid, inode
_REPLY = struct.Struct("=IHHII BBBB 48s IIIII")
_REPLY_MAX = 1024
_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2 = 1, 4, 5
_CONNECTED = (_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2)  # a client may have finished sending, but we have not
_MAPPED = bytes(10) + b"\xff\xff"  # before the IPv4 address of a client's IPv6 socket

Address = tuple[str, int]  # an IPv4 or IPv6 address, and a port


def connected() -> socket.socket:
    """A socket for ask(), which gets replies of the kernel only; raises OSError without the protocol."""
    sock = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG)
    sock.connect((0, 0))
    return sock


def ask(netlink: socket.socket, sequence: int, client: Address, ours: Address) -> int | None:
    """The uid of the socket that is connected from `client` to us; None without one.

    Raises OSError, also for a reply to another `sequence`, and struct.error.
    """
    netlink.send(query(sequence, client, ours))
    reply = netlink.recv(_REPLY_MAX, socket.MSG_DONTWAIT)  # it is there when send() returns
    _, kind, _, answered, _ = struct.unpack_from("=IHHII", reply)
    if answered != sequence:
        raise OSError("a reply to another query")
    if kind != _BY_FAMILY:  # an error: no such socket
        return None
    *_, found, state, _, _, ids, _, _, _, uid, inode = _REPLY.unpack_from(reply)
    is_mapped = found == socket.AF_INET6 and _family(client) == socket.AF_INET
    expected = _ids(client, ours, _MAPPED if is_mapped else b"")
    if state not in _CONNECTED or not inode or ids[: _IDS.size] != expected:
        return None
    return int(uid)


def query(sequence: int, client: Address, ours: Address) -> bytes:
    """The message that asks for the socket which is connected from `client` to us."""
    head = (_QUERY.size + _IDS.size + 4 + len(_NO_COOKIE), _BY_FAMILY, _REQUEST, sequence, 0)
    body = _QUERY.pack(*head, _family(client), socket.IPPROTO_TCP, 0, 0, 0xFFFFFFFF)
    return body + _ids(client, ours) + bytes(4) + _NO_COOKIE


def _family(address: Address) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address[0] else socket.AF_INET


def _ids(client: Address, ours: Address, before: bytes = b"") -> bytes:
    packed = (before + socket.inet_pton(_family(client), address) for address, _ in (client, ours))
    return _IDS.pack(client[1], ours[1], *(each.ljust(16, b"\0") for each in packed))
