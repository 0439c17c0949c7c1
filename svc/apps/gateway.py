"""The process of apps: accepts browsers' connections, and serves each on one loop."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable, Sequence
from functools import partial

from svc.apps.addresses import Place
from svc.apps.connection import Connection
from svc.apps.ends import End
from svc.apps.pair import Authority
from svc_helper.shim.loop import IN, Loop

CONNECTIONS_MAX = 1024  # more wait in the kernel's queue
ACCEPTS = 16  # of one event, so that those who are there have their turn
PAUSE_S = 0.2  # without descriptors
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Gateway:
    """Listens while there is room for one more connection."""

    def __init__(
        self,
        loop: Loop,
        listeners: Sequence[socket.socket],
        find: Callable[[str], Place | None],
        authority: Authority,
        most: int = CONNECTIONS_MAX,
    ) -> None:
        self.loop, self.listeners, self.find, self.authority, self.most = (
            loop,
            listeners,
            find,
            authority,
            most,
        )
        self.connections: set[Connection] = set()
        self.is_listening = self.is_closed = False
        for listener in listeners:
            listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        """End all connections; the listeners are the caller's."""
        self.is_closed = True
        self._pause()
        for connection in list(self.connections):
            connection.close()

    def end(self, visits: Sequence[str]) -> None:
        """End the connections of visitors whose sign-in has ended."""
        ended = set(visits)
        for connection in list(self.connections):
            if connection.program is not None and connection.program.visit in ended:
                connection.close()

    def _listen(self) -> None:
        if not self.is_listening and not self.is_closed and len(self.connections) < self.most:
            self.is_listening = True
            for listener in self.listeners:
                self.loop.watch(listener.fileno(), IN, partial(self._accept, listener))

    def _pause(self) -> None:
        self.is_listening = False
        for listener in self.listeners:
            self.loop.unwatch(listener.fileno())

    def _accept(self, listener: socket.socket, _events: int) -> None:
        for _ in range(ACCEPTS):
            if len(self.connections) >= self.most:
                self._pause()
                return
            try:
                sock, address = listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in FULL:
                    self._pause()
                    self.loop.later(PAUSE_S, self._listen)
                    return
                continue  # the client has gone
            self._begin(sock, str(address[0]))

    def _begin(self, sock: socket.socket, address: str) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = End(self.loop, sock, lambda _: None)
        self.connections.add(Connection(self.loop, end, address, self.find, self.authority, self._gone))

    def _gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self._listen()
