"""Peer proof: is this descriptor an open connection that our listener accepted, and whose?

On the unix pair the app passes the caller's connection with each call. It could pass a
socket of its own making, so only the kernel's facts about the socket count. The checks:

- a stream socket of AF_UNIX: SO_PEERCRED has a meaning;
- not listening: SO_PEERCRED of a listener is its creator, root;
- bound to our path: the client end of a connection has no name, but its SO_PEERCRED
  is the listener's creator, root;
- bound on our own socket file: in a mount namespace of its own the app can bind
  such an end to our path on another file;
- not closed by the peer: a closed connection keeps its uid for ever.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import struct

SIOCUNIXFILE = 0x89E0  # opens (O_PATH) the file that an AF_UNIX socket is bound on; linux/un.h


class NoProof(Exception):
    """The descriptor proves no peer; the text is the failed check."""


def _identity(fd: int) -> tuple[str, str]:
    """Mount and inode of an open file, without a call to its file system (which may be a user's FUSE)."""
    with open(f"/proc/self/fdinfo/{fd}", encoding="ascii") as file:
        facts = dict(line.split(":", 1) for line in file if ":" in line)
    return facts["mnt_id"].strip(), facts["ino"].strip()


class Listener:
    """Our socket file, kept open so that its inode is not reused."""

    def __init__(self, path: str, *, check_file: bool = True) -> None:
        self.path = path
        self.check_file = check_file  # needs CAP_NET_ADMIN: root only
        self.fd = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)

    def proven_uid(self, fd: int) -> int:
        """The uid of the peer of a connection that our listener accepted; raises NoProof. Leaves fd open."""
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
        uid: int = struct.unpack("i2I", credentials)[1]
        return uid

    def _check(self, sock: socket.socket) -> None:
        if sock.family != socket.AF_UNIX or sock.type != socket.SOCK_STREAM:
            raise NoProof("not a Unix stream socket")
        if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise NoProof("a listener")
        if sock.getsockname() != self.path:
            raise NoProof("not bound to our path")
        if self.check_file:
            bound = fcntl.ioctl(sock.fileno(), SIOCUNIXFILE)
            try:
                if _identity(bound) != _identity(self.fd):
                    raise NoProof("bound to our path, but on another file")
            finally:
                os.close(bound)
        poll = select.poll()
        poll.register(sock, select.POLLRDHUP)
        if poll.poll(0):
            raise NoProof("closed by the peer")
