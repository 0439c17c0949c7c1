"""Sockets inside the container: made by a child in its network namespace, used by the shim.

A socket belongs to the namespace that it was made in, wherever it is used. So a
child, forked before the shim grows, joins the namespaces of the container
(the user namespace that owns the network comes first) and hands out sockets that
are not connected yet; the shim connects them itself and waits for nobody.
"""

from __future__ import annotations

import gc
import os
import sys
from _socket import (  # the C half alone: the child is to stay small
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

    Given = Callable[[int | None], None]

_NS_GET_USERNS = 0xB701
_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_FAMILIES = {b"4": AF_INET, b"6": AF_INET6}


def start(namespace: int) -> tuple[socket, int]:
    """Fork the child that works in this network namespace, which is closed here: our line to it, its pid."""
    ours, theirs = socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC)
    gc.freeze()  # neither side's collections are to touch, and so copy, the memory that both share
    pid = os.fork()
    if pid == 0:
        try:
            _serve(theirs.fileno(), namespace)
        finally:
            os._exit(1)
    theirs.close()
    os.close(namespace)
    return ours, pid


def _serve(line_fd: int, namespace: int) -> NoReturn:
    """In the child: hand out sockets until the shim is gone."""
    line_fd, namespace = os.dup2(line_fd, 3, inheritable=False), os.dup2(namespace, 4, inheritable=False)
    os.closerange(5, os.sysconf("SC_OPEN_MAX"))
    with open("/proc/self/comm", "w", encoding="ascii") as file:
        file.write("svc-shim-net")
    line = socket(fileno=line_fd)
    joined = False
    while True:
        asked = line.recv(1)
        if not asked:
            os._exit(0)
        try:
            if not joined:  # not before there is a port: most of the child's memory is what joining needs
                _join(namespace)
                joined = True
            made = socket(_FAMILIES[asked], SOCK_STREAM | SOCK_CLOEXEC)
        except OSError as error:
            line.sendmsg([str(error.errno or 1).encode()], [], MSG_NOSIGNAL)
            continue
        right = made.fileno().to_bytes(4, sys.byteorder)
        line.sendmsg([b"0"], [(SOL_SOCKET, SCM_RIGHTS, right)], MSG_NOSIGNAL)
        made.close()


def _join(namespace: int) -> None:
    """Enter the network namespace by way of the user namespace that owns it; raises OSError."""
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
    """The shim's end: asks for sockets and passes each to who asked, in order."""

    def __init__(
        self, loop: Loop, child: tuple[socket, int], renew: Callable[[], tuple[socket, int]]
    ) -> None:
        """`child` is start()'s answer; `renew` gets another, should this one be killed."""
        self._loop = loop
        self._renew = renew
        self._asked: deque[Given] = deque()
        self._line: socket | None = None
        self._listen(child)

    def _listen(self, child: tuple[socket, int]) -> socket:
        line, self._pid = child
        self._line = line
        self._loop.watch(line.fileno(), 1, lambda events: self._take(line))
        return line

    def ask(self, family: int, given: Given) -> None:
        """Get a socket of AF_INET or AF_INET6 inside, not blocking; None when there can be none."""
        word = b"6" if family == AF_INET6 else b"4"
        try:
            line = self._line or self._listen(self._renew())
            line.send(word, MSG_NOSIGNAL | MSG_DONTWAIT)
        except OSError:  # it has been killed, or does not keep up with hundreds of requests
            given(None)
            return
        self._asked.append(given)

    def _take(self, line: socket) -> None:
        try:
            word, ancillary, _, _ = line.recvmsg(16, CMSG_SPACE(4), MSG_CMSG_CLOEXEC | MSG_DONTWAIT)
        except BlockingIOError:
            return
        except OSError:
            word, ancillary = b"", []
        if not word:
            self._lost(line)
            return
        made = None
        for level, kind, content in ancillary:
            if (level, kind) == (SOL_SOCKET, SCM_RIGHTS) and len(content) == 4:
                made = int.from_bytes(content, sys.byteorder)
                os.set_blocking(made, False)
        self._asked.popleft()(made)

    def _lost(self, line: socket) -> None:
        """The child has ended: whoever waits gets nothing; the next who asks gets a new child."""
        self._loop.unwatch(line.fileno())
        line.close()
        self._line = None
        os.waitpid(self._pid, 0)
        asked, self._asked = self._asked, deque()
        for given in asked:
            given(None)
