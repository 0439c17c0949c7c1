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
from svc.apps.seats import BOUNDS, Bounds, Seats
from svc_helper.shim.loop import IN, Loop

ACCEPTS = 16  # of one event, so that those who are there have their turn
PAUSE_S = 0.2  # without descriptors
STALLED_CHECK_S = 15.0  # between two looks at who takes or sends nothing
FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


Client = Callable[[socket.socket], str]


def by_address(sock: socket.socket) -> str:
    """The client of a connection where nothing more is known of it."""
    return str(sock.getpeername()[0])


class Gateway:
    """Listens while there is room for one more connection. `client_of` tells whose place one takes."""

    def __init__(
        self,
        loop: Loop,
        listeners: Sequence[socket.socket],
        find: Callable[[str], Place | None],
        authority: Authority,
        client_of: Client = by_address,
        bounds: Bounds = BOUNDS,
    ) -> None:
        self.loop, self.listeners, self.find, self.authority = loop, listeners, find, authority
        self.client_of = client_of
        self.connections: set[Connection] = set()
        self.seats = Seats(bounds)
        self.is_listening = self.is_closed = False
        for listener in listeners:
            listener.setblocking(False)
        self._listen()
        loop.later(STALLED_CHECK_S, self._close_stalled)

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

    def _close_stalled(self) -> None:
        """Close who has stopped taking, or sending what was begun."""
        if not self.is_closed:
            for connection in list(self.connections):
                connection.close_if_stalled(STALLED_CHECK_S)
            self.loop.later(STALLED_CHECK_S, self._close_stalled)

    def _listen(self) -> None:
        if not self.is_listening and not self.is_closed and not self.seats.is_full:
            self.is_listening = True
            for listener in self.listeners:
                self.loop.watch(listener.fileno(), IN, partial(self._accept, listener))

    def _pause(self) -> None:
        self.is_listening = False
        for listener in self.listeners:
            self.loop.unwatch(listener.fileno())

    def _accept(self, listener: socket.socket, _events: int) -> None:
        for _ in range(ACCEPTS):
            if self.seats.is_full:
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
        try:
            client = self.client_of(sock)
        except OSError:
            sock.close()  # it has gone
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        end = End(self.loop, sock, lambda _: None)
        connection = Connection(self.loop, end, address, self.find, self.authority, self._gone)
        connection.let_in = self.seats.admit
        self.connections.add(connection)
        self.seats.enter(connection, client)

    def _gone(self, connection: Connection) -> None:
        self.connections.discard(connection)
        self.seats.leave(connection)
        self._listen()
