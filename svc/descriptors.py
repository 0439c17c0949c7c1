"""Descriptors that the other end of a Unix socket sends with its bytes: never received, never waited for.

Whoever takes or closes the last copy of a TCP connection with SO_LINGER waits for its far
end. Linux 6.16 and newer refuse such messages to a listener with SO_PASSRIGHTS at 0 (root
sets it). On older kernels a connection is read here only as far as it brings no
descriptors. What does bring some is closed by the end of a process, which never lingers.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import threading
import time
from functools import cache

SO_PASSRIGHTS = 83  # of Linux; Python 3.11 has no name for it
PART = 65536
CLOSED_AT_ONCE = 64  # connections by one process
FORKED_AGAIN_S = 0.5


class Brought(ConnectionResetError):
    """The client sent descriptors; its connection is of no further use."""


class GuardedSocket(socket.socket):
    """A connection on which descriptors may arrive."""

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As a socket's; raises Brought instead of receiving descriptors.

        A look takes none, and stops at the first message with some.
        """
        found, _, message_flags, _ = self.recvmsg(size, 0, flags | socket.MSG_PEEK)
        if message_flags & socket.MSG_CTRUNC:
            raise Brought("descriptors came with the bytes")
        if flags & socket.MSG_PEEK or not found:
            return found
        return super().recv(len(found), flags)

    def close(self) -> None:
        """Close it; by the end of a process when descriptors are left in it."""
        if self.fileno() < 0:
            return
        try:
            with contextlib.suppress(OSError):
                self.setblocking(False)
                self.shutdown(socket.SHUT_RDWR)  # from here on nothing more arrives
            while self.recv(PART):
                pass
        except Brought:
            _closer().put(self.detach())
            return
        except OSError:
            pass
        super().close()


class _Closer:
    """The thread that has connections closed by processes."""

    def __init__(self) -> None:
        self.queue: queue.SimpleQueue[int] = queue.SimpleQueue()
        threading.Thread(target=self._run, daemon=True, name="closer").start()

    def put(self, descriptor: int) -> None:
        """Have it closed."""
        self.queue.put(descriptor)

    def _run(self) -> None:
        while True:
            batch = [self.queue.get()]
            with contextlib.suppress(queue.Empty):
                while len(batch) < CLOSED_AT_ONCE:
                    batch.append(self.queue.get_nowait())
            _close_by_exit(batch)


@cache
def _closer() -> _Closer:
    return _Closer()


def _close_by_exit(batch: list[int]) -> None:
    """Fork a process that inherits the connections and exits as soon as this one has closed them.

    The kernel lets nothing linger that an exiting process closes.
    """
    reader, writer = os.pipe2(os.O_CLOEXEC)
    pid = _fork()
    if pid == 0:
        os.close(writer)
        os.read(reader, 1)
        os._exit(0)
    os.close(reader)
    for descriptor in batch:
        os.close(descriptor)
    os.close(writer)
    os.waitpid(pid, 0)


def _fork() -> int:
    """As os.fork, again and again while the host has no room for a process."""
    while True:
        try:
            return os.fork()
        except OSError:
            time.sleep(FORKED_AGAIN_S)


def guarded(sock: socket.socket) -> socket.socket:
    """The accepted connection, guarded where the kernel lets descriptors through."""
    if sock.family != socket.AF_UNIX or not _may_bring(sock):
        return sock
    return GuardedSocket(sock.family, sock.type, sock.proto, fileno=sock.detach())


def _may_bring(sock: socket.socket) -> bool:
    try:
        return sock.getsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS) != 0
    except OSError:  # a kernel without the option
        return True
