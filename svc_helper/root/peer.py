"""Peer proof: is this descriptor a living connection that our listener accepted, and whose?

The app shows the caller's connection with a call on the unix pair. It could
also show sockets that it made itself, so nothing is believed but what the
kernel says of the socket. What each check is for:

- a stream socket of AF_UNIX: SO_PEERCRED has a meaning;
- not listening: a listener's SO_PEERCRED is its maker, root;
- named by our path: the app's own end of a connection has no name, but its
  SO_PEERCRED is the listener's maker, root;
- bound on our very socket file: in a mount namespace of its own the app can
  give such an end our path's name, on another file;
- not hung up: a closed connection keeps its uid for ever.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct

SIOCUNIXFILE = 0x89E0  # opens (O_PATH) the file that an AF_UNIX socket is bound on; linux/un.h


class NoProof(Exception):
    """The descriptor proves nothing; the text says what is wrong with it."""


def _identity(fd: int) -> tuple[str, str]:
    """Mount and inode of an open file, without asking its file system (which may be a user's FUSE)."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        facts = dict(line.split(":", 1) for line in file if ":" in line)
    return facts["mnt_id"].strip(), facts["ino"].strip()


class Listener:
    """Our socket file, held open so that its inode cannot become another file's."""

    def __init__(self, path: str, *, see_file: bool = True) -> None:
        self.path = path
        self.see_file = see_file  # needs CAP_NET_ADMIN: root only
        self.fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def proven_uid(self, fd: int) -> int:
        """The uid at the other end of an accepted connection of ours; raises NoProof. Leaves fd open."""
        copy = os.dup(fd)
        try:
            sock = socket.socket(fileno=copy)
        except OSError:
            os.close(copy)
            raise NoProof("not a socket") from None
        with sock:
            try:
                self._check(sock)
                credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
            except OSError as error:
                raise NoProof(f"not an accepted connection: {error.strerror}") from None
        uid: int = struct.unpack("3i", credentials)[1]
        return uid

    def _check(self, sock: socket.socket) -> None:
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
            raise NoProof("not a Unix stream socket")
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise NoProof("a listener")
        if sock.getsockname() != self.path:
            raise NoProof("not of our listener")
        if self.see_file:
            bound = fcntl.ioctl(sock.fileno(), SIOCUNIXFILE)
            try:
                if _identity(bound) != _identity(self.fd):
                    raise NoProof("named as our listener, but on another file")
            finally:
                os.close(bound)
        poll = select.poll()
        poll.register(sock, select.POLLRDHUP)
        if poll.poll(0):
            raise NoProof("hung up")
