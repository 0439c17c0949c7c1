"""One forwarded connection, between a client on the host and a program in the container.

Bytes are spliced from socket to socket through a pipe, in the kernel. Each
direction ends by itself: a half-closed connection stays half-closed. A side that
does not read blocks only its own connection.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from collections.abc import Callable

from svc_helper.shim.loop import ERR, HUP, IN, OUT, Loop
from svc_helper.wire.limits import CONNECT_S

PIPE_BYTES = 256 * 1024  # more is not faster; the kernel limits the total of a user
_POOL = 8  # empty pipes kept for reuse
_ROUNDS = 4  # of one event, so that other connections get their turn
_INSIDE = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: close with a reset
_SPLICE = os.SPLICE_F_MOVE | os.SPLICE_F_NONBLOCK
_PENDING = (0, errno.EINPROGRESS)


def reset(sock: socket.socket) -> None:
    """Close a socket with a reset, so that the other side does not wait."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
    sock.close()


class Pipes:
    """A pool of pipes; a connection has one only while it holds bytes in it."""

    def __init__(self) -> None:
        self._empty: list[tuple[int, int]] = []

    def take(self) -> tuple[int, int]:
        """An empty pipe, its reading end first; raises OSError when the descriptors are used up."""
        if self._empty:
            return self._empty.pop()
        pipe = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            fcntl.fcntl(pipe[1], fcntl.F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass  # the user's limit is reached; a small pipe works too
        return pipe

    def give_back(self, pipe: tuple[int, int], *, empty: bool) -> None:
        """Keep an empty pipe for reuse, or close it."""
        if empty and len(self._empty) < _POOL:
            self._empty.append(pipe)
            return
        os.close(pipe[0])
        os.close(pipe[1])

    def close(self) -> None:
        """Close the pooled pipes."""
        while self._empty:
            self.give_back(self._empty.pop(), empty=False)


class Direction:
    """The bytes from one socket to the other."""

    __slots__ = ("_pipe", "_pipes", "ended", "held", "shut", "source", "target")

    def __init__(self, pipes: Pipes, source: socket.socket, target: socket.socket) -> None:
        self._pipes = pipes
        self._pipe: tuple[int, int] | None = None
        self.source, self.target = source, target
        self.held = 0  # bytes in the pipe
        self.ended = False  # the source is at its end
        self.shut = False  # and the target's write side is shut down

    def move(self) -> int:
        """Move the available bytes; how many the source gave. Raises OSError when a side is gone."""
        taken = 0
        for _ in range(_ROUNDS):
            if not self.held:
                count = self._pull()
                if not count:
                    break
                taken += count
            if not self._push():
                break
        if self.ended and not self.held and not self.shut:
            self.target.shutdown(socket.SHUT_WR)
            self.shut = True
        return taken

    def _pull(self) -> int:
        if self.ended:
            return 0
        pipe = self._pipe or self._pipes.take()
        self._pipe = pipe
        try:
            self.held = os.splice(self.source.fileno(), pipe[1], PIPE_BYTES, flags=_SPLICE)
            self.ended = not self.held
        except BlockingIOError:
            pass
        if not self.held:
            self.release()
        return self.held

    def _push(self) -> bool:
        """Whether the target took all bytes in the pipe."""
        while self.held and self._pipe is not None:
            try:
                self.held -= os.splice(self._pipe[0], self.target.fileno(), self.held, flags=_SPLICE)
            except BlockingIOError:
                return False
        self.release()
        return True

    def release(self) -> None:
        """Give the pipe back; bytes in it are lost."""
        if self._pipe is not None:
            self._pipes.give_back(self._pipe, empty=not self.held)
            self._pipe = None


class Connection:
    """Both sides; `request` gets sockets inside, `moved` counts bytes, `gone` is called at the end.

    `begun` is called when the program has accepted; it has CONNECT_S for that, with a full queue too.
    """

    def __init__(
        self,
        loop: Loop,
        pipes: Pipes,
        outside: socket.socket,
        port: int,
        request: Callable[[int, Callable[[int | None], None]], None],
        moved: Callable[[int], None],
        gone: Callable[[Connection], None],
        begun: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self._pipes, self._port = loop, pipes, port
        self._request, self._moved, self._gone, self._begun = request, moved, gone, begun
        self._outside = outside
        self._inside: socket.socket | None = None
        self._tries = list(_INSIDE)
        self._ways: tuple[Direction, ...] = ()
        self._hung_up: set[int] = set()
        self.closed = False
        self._timeout = loop.later(CONNECT_S, self.abort)
        self._request(self._tries[0][0], self._connect)

    def _connect(self, fd: int | None) -> None:
        """Connect a socket inside; None if none could be created."""
        if self.closed:
            if fd is not None:
                os.close(fd)
            return
        if fd is None:
            self._refused()
            return
        self._inside = inside = socket.socket(fileno=fd)
        if inside.connect_ex((self._tries[0][1], self._port)) in _PENDING:
            self._loop.watch(fd, OUT, lambda events: self._connected(inside))
        else:
            self._refused()

    def _connected(self, inside: socket.socket) -> None:
        if inside.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            self._refused()
        else:
            self._begin(inside)

    def _refused(self) -> None:
        """Nothing listens there: try the next address; after the last, reset the client."""
        if self._inside is not None:
            self._loop.unwatch(self._inside.fileno())
            self._inside.close()
            self._inside = None
        del self._tries[0]
        if self._tries:
            self._request(self._tries[0][0], self._connect)
        else:
            self.abort()

    def _begin(self, inside: socket.socket) -> None:
        self._timeout.drop()
        for sock in (self._outside, inside):
            if sock.family != socket.AF_UNIX:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._ways = (
            Direction(self._pipes, self._outside, inside),
            Direction(self._pipes, inside, self._outside),
        )
        self._begun()
        self._watch()

    def _watch(self) -> None:
        """Watch only for events that can be used."""
        there, back = self._ways
        for come, go in ((there, back), (back, there)):
            fd = come.source.fileno()
            mask = (IN if not come.ended and not come.held else 0) | (OUT if go.held else 0)
            if not mask and fd in self._hung_up:
                self._loop.unwatch(fd)  # its event would repeat without end
            else:
                self._loop.watch(fd, mask, self._outside_ready if come is there else self._inside_ready)

    def _outside_ready(self, events: int) -> None:
        self._ready(events, *self._ways)

    def _inside_ready(self, events: int) -> None:
        self._ready(events, *reversed(self._ways))
        if self._inside is not None and not self.closed:
            # A program that writes head and body apart waits for the acknowledgement of the head (Nagle):
            # without this it has it after 40 ms. The kernel forgets it after each receive.
            self._inside.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _ready(self, events: int, come: Direction, go: Direction) -> None:
        """Handle events of come's source, which is also go's target."""
        if events & ERR:
            self.abort()
            return
        if events & HUP:
            self._hung_up.add(come.source.fileno())
        try:
            if events & OUT:
                self._moved(go.move())
            if events & (IN | HUP):
                self._moved(come.move())
        except OSError:  # one side has gone, or the descriptors are used up
            self.abort()
            return
        if come.shut and go.shut:
            self._close()
        else:
            self._watch()

    def abort(self) -> None:
        """Close it at once, with a reset to both sides."""
        if self.closed:
            return
        for sock in (self._outside, self._inside):
            if sock is not None:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
        self._close()

    def _close(self) -> None:
        self.closed = True
        self._timeout.drop()
        for way in self._ways:
            way.release()
        for sock in (self._outside, self._inside):
            if sock is not None:
                self._loop.unwatch(sock.fileno())
                sock.close()
        self._gone(self)
