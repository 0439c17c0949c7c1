"""Which Linux users count as one client of the host socket, and of the TLS listener by loopback.

A user counts together with the user's subordinate uids, and all uids without account
count together: whoever makes up many uids is still one client. Nothing is authenticated here.
"""

from __future__ import annotations

import bisect
import os
import re
import socket
import struct
import time
from typing import Any, NamedTuple

from svc_helper.wire import sock_diag
from svc_helper.wire.limits import USER_NAME

STRANGERS = "without account"
_UCRED = struct.Struct("i2I")
CHECK_S = 1.0  # between two checks whether a file has changed
_ENROLLED = re.compile(rf"({USER_NAME}) ([0-9]{{1,10}}) [a-z]+", re.MULTILINE)
_RANGE = re.compile(r"([^:\s]+):([0-9]{1,10}):([0-9]{1,10})\s*", re.MULTILINE)


def peer_uid(sock: socket.socket) -> int:
    """The uid of the peer when it connected, from the kernel."""
    if sock.family != socket.AF_UNIX:  # TCP returns pid 0 and uid 4294967295
        raise ValueError("not a Unix socket")
    _, uid, _ = _UCRED.unpack(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return int(uid)


class _Range(NamedTuple):
    first: int
    end: int
    uid: int  # of the owner


class Uids:
    """The clients by uid, from the enrolment list and /etc/subuid, which are read again when they change.

    Ranges that only a directory service knows need no look-up: their uids have no account.
    """

    def __init__(self, enrolled: str, subuid: str = "/etc/subuid") -> None:
        self.paths = (enrolled, subuid)
        self.versions: tuple[tuple[int, int, int] | None, ...] = ()
        self.checked_at = 0.0
        self.enrolled: set[int] = set()
        self.ranges: list[_Range] = []

    def client_of(self, uid: int) -> str:
        """The client that a uid belongs to: an account's uid, or STRANGERS. Root is always itself."""
        self._refresh()
        if uid in self.enrolled or uid in (0, os.geteuid()):
            return f"uid {uid}"
        place = bisect.bisect_right(self.ranges, uid, key=lambda found: found.first) - 1
        if place >= 0 and uid < self.ranges[place].end:
            return f"uid {self.ranges[place].uid}"
        return STRANGERS

    def _refresh(self) -> None:
        now = time.monotonic()
        if self.versions and now < self.checked_at + CHECK_S:
            return
        self.checked_at = now
        versions = tuple(_version(path) for path in self.paths)
        if versions != self.versions:
            self.versions = versions
            self._read()

    def _read(self) -> None:
        enrolled, subuid = map(_text, self.paths)
        names = {name: int(uid) for name, uid in _ENROLLED.findall(enrolled)}
        self.enrolled = set(names.values())
        owners = names | {str(uid): uid for uid in self.enrolled}
        self.ranges = sorted(
            _Range(int(first), int(first) + int(count), owners[owner])
            for owner, first, count in _RANGE.findall(subuid)
            if owner in owners
        )


class SocketOwners:
    """Tells the uid at the other end of a loopback connection: of a user, or of sshd's child for `ssh -L`."""

    def __init__(self, netlink: socket.socket) -> None:
        """`netlink` belongs to the host's network namespace, in which this process has no other socket."""
        self.netlink = netlink
        self.sequence = 0

    def uid_of(self, client: tuple[Any, ...], ours: tuple[Any, ...]) -> int | None:
        """The uid of the client's socket; None where the kernel does not tell."""
        self.sequence = (self.sequence + 1) & 0xFFFFFFFF
        try:
            while self.netlink.recv(1024, socket.MSG_DONTWAIT):
                """A reply that came late would be taken for this one."""
        except OSError:
            pass
        try:
            return sock_diag.ask(self.netlink, self.sequence, _plain(client), _plain(ours))
        except (OSError, ValueError, struct.error):
            return None


def _plain(address: tuple[Any, ...]) -> sock_diag.Address:
    """Address and port; IPv4 never as IPv6."""
    return str(address[0]).partition("%")[0].removeprefix("::ffff:"), int(address[1])


def _version(path: str) -> tuple[int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
