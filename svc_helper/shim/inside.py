"""Sockets inside the container: created by a child in its network namespace, used by the shim.

A socket belongs to the namespace in which it was created, wherever it is used.
So a child, forked before the shim grows, joins the container's namespaces (first
the user namespace that owns the network) and sends unconnected sockets to the
shim, which connects them without blocking.
"""

from __future__ import annotations

import gc
import os
import sys
from _socket import (  # the C half alone: the child must stay small
    AF_INET,
    AF_INET6,
    AF_UNIX,
    CMSG_SPACE,
    MSG_CMSG_CLOEXEC,
    MSG_DONTWAIT,
    MSG_NOSIGNAL,
    SCM_RIGHTS,
    SOCK_CLOEXEC,
    SOCK_SEQPACKET,
    SOCK_STREAM,
    SOL_SOCKET,
    socket,
    socketpair,
)
from collections import deque

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import NoReturn

    from svc_helper.shim.loop import Loop

    Receiver = Callable[[int | None], None]  # gets a socket's descriptor

_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_FAMILIES = {b"4": AF_INET, b"6": AF_INET6}


def start(namespace: int) -> tuple[socket, int]:
    """Fork the child for a network namespace, whose descriptor is closed here; our socket to it, its pid."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)
    gc.freeze()  # garbage collection must not touch, and so copy, the shared memory
    pid = os.fork()
    if pid == 0:
        try:
            _serve(theirs.fileno(), namespace)
        finally:
            os._exit(1)
    theirs.close()
    os.close(namespace)
    return ours, pid


def _serve(shim_fd: int, namespace: int) -> NoReturn:
    """In the child: send sockets until the shim has gone."""
    shim_fd, namespace = os.dup2(shim_fd, 3, inheritable=False), os.dup2(namespace, 4, inheritable=False)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("svc-shim-net")
    shim = socket(fileno=shim_fd)
    joined = False
    while True:
        family = shim.recv(1)
        if not family:
            os._exit(0)
        try:
            if not joined:  # only for the first port: joining needs most of the child's memory
                _join(namespace)
                joined = True
            created = socket(_FAMILIES[family], SOCK_STREAM | SOCK_CLOEXEC)
        except OSError as error:
            shim.sendmsg([str(error.errno or 1).encode()], [], MSG_NOSIGNAL)
            continue
        right = created.fileno().to_bytes(4, sys.byteorder)
        shim.sendmsg([b"0"], [(SOL_SOCKET, SCM_RIGHTS, right)], MSG_NOSIGNAL)
        created.close()


def _join(namespace: int) -> None:
    """Enter the network namespace, after the user namespace that owns it; raises OSError."""
    import ctypes
    import fcntl

    if os.path.sameopenfile(namespace, os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)):
        return
    setns = ctypes.CDLL(None, use_errno=True).setns
    owner = fcntl.ioctl(namespace, _NS_GET_USERNS)
    own = os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    if not os.path.sameopenfile(owner, own) and setns(owner, _CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "the user namespace cannot be entered")
    if setns(namespace, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "the network namespace cannot be entered")
    os.close(owner)
    os.close(own)


class Inside:
    """The shim's end: requests sockets and passes each to its receiver, in order."""

    def __init__(
        self, loop: Loop, child: tuple[socket, int], renew: Callable[[], tuple[socket, int]]
    ) -> None:
        """`child` is start()'s result; `renew` starts another one after it was killed."""
        self._loop = loop
        self._renew = renew
        self._receivers: deque[Receiver] = deque()
        self._child: socket | None = None
        self._listen(child)

    def _listen(self, child: tuple[socket, int]) -> socket:
        sock, self._pid = child
        self._child = sock
        self._loop.watch(sock.fileno(), 1, lambda events: self._receive(sock))
        return sock

    def request(self, family: int, receiver: Receiver) -> None:
        """Get a non-blocking socket of AF_INET or AF_INET6 inside; None when none can be created."""
        try:
            sock = self._child or self._listen(self._renew())
            sock.send(b"6" if family == AF_INET6 else b"4", MSG_NOSIGNAL | MSG_DONTWAIT)
        except OSError:  # the child was killed, or does not keep up with hundreds of requests
            receiver(None)
            return
        self._receivers.append(receiver)

    def _receive(self, sock: socket) -> None:
        try:
            reply, ancillary, _, _ = sock.recvmsg(16, CMSG_SPACE(4), MSG_CMSG_CLOEXEC | MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            reply, ancillary = b"", []
        if not reply:
            self._lost(sock)
            return
        created = None
        for level, kind, content in ancillary:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS) and len(content) == 4:
                created = int.from_bytes(content, sys.byteorder)
                os.set_blocking(created, False)
        self._receivers.popleft()(created)

    def _lost(self, sock: socket) -> None:
        """The child has ended: open requests fail; the next request starts a new child."""
        self._loop.unwatch(sock.fileno())
        sock.close()
        self._child = None
        os.waitpid(self._pid, 0)
        receivers, self._receivers = self._receivers, deque()
        for receiver in receivers:
            receiver(None)
