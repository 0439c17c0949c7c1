"""Connections to programs of a workspace: from listeners on the host, and streams that come from the app."""

from __future__ import annotations

import errno
import resource
import socket

from svc_helper.agent.calls import Failure
from svc_helper.shim.clients import Clients
from svc_helper.shim.control import Request, sent_socket
from svc_helper.shim.forward import Connection, Pipes, reset
from svc_helper.shim.inside import Inside
from svc_helper.shim.loop import IN, Loop
from svc_helper.wire.limits import ACCESS_HOST
from svc_helper.wire.quick_typing import Any

CONNECTIONS_MAX = 512  # of a workspace; more wait in the kernel's queue
_DESCRIPTORS = 6  # of a connection that is blocked both ways: two sockets, two pipes
_RESERVE = 256  # descriptors for everything else
_ACCEPTS = 16  # of one event
_PAUSE_S = 0.2
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class Port:
    """One listener, its target, and who may connect."""

    def __init__(self, host_port: int, container_port: int, access: str, listener: socket.socket) -> None:
        self.host_port, self.container_port, self.access = host_port, container_port, access
        self.listener = listener
        self.address = listener.getsockname()
        self.connections: set[Connection] = set()
        self.refused = 0  # connections, since opened
        self.bytes = 0  # both ways, since opened

    def moved(self, count: int) -> None:
        """Count forwarded bytes."""
        self.bytes += count


class Ports:
    """All open ports of a workspace."""

    def __init__(self, loop: Loop, inside: Inside, clients: Clients) -> None:
        self._loop, self._inside, self._clients = loop, inside, clients
        self._pipes = Pipes()
        self._open: dict[int, Port] = {}
        self._handed_over: set[Connection] = set()
        self._count = 0
        self._paused = False
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._most = max(1, min(CONNECTIONS_MAX, (files - _RESERVE) // _DESCRIPTORS))

    def __bool__(self) -> bool:
        return bool(self._open or self._handed_over)

    def open(self, host_port: int, container_port: int, access: str, listener: socket.socket) -> None:
        """Forward connections to the listener; replaces an open port of this number."""
        self.close(host_port)
        listener.setblocking(False)
        self._open[host_port] = port = Port(host_port, container_port, access, listener)
        self._listen(port)

    def close(self, host_port: int) -> None:
        """Close the listener and its connections; no effect on a port that is not open."""
        port = self._open.pop(host_port, None)
        if port is None:
            return
        self._loop.unwatch(port.listener.fileno())
        port.listener.close()
        for connection in list(port.connections):
            connection.abort()

    def close_all(self) -> None:
        """Close all ports and connections, the pooled pipes and the connection to the kernel."""
        for host_port in list(self._open):
            self.close(host_port)
        for connection in list(self._handed_over):
            connection.abort()
        self._pipes.close()
        self._clients.close()

    def connect(self, request: Request) -> None:
        """Connect the stream that came with a request to a program inside; answers when it has accepted.

        These have their own count in no row: whoever hands them over counts them.
        """
        port = int(request.args["container_port"])
        outside = sent_socket(request.fds, socket.SOCK_STREAM)
        if self._count >= self._most:
            outside.close()
            raise Failure("unavailable", f"{self._most} connections are open in this workspace")
        outside.setblocking(False)
        self._count += 1
        answered = False

        def begun() -> None:
            nonlocal answered
            answered = True
            request.answer({})

        def gone(connection: Connection) -> None:
            self._handed_over.discard(connection)
            self._count -= 1
            self._listen_again()
            if not answered:
                request.fail(Failure("not_listening", f"no program takes connections at port {port}"))

        connection = Connection(
            self._loop, self._pipes, outside, port, self._inside.request, lambda count: None, gone, begun
        )
        if not connection.closed:
            self._handed_over.add(connection)

    def rows(self) -> list[dict[str, Any]]:
        """{"host_port", "container_port", "access", "connections", "refused", "bytes"} of each port."""
        return [
            {
                "host_port": port.host_port,
                "container_port": port.container_port,
                "access": port.access,
                "connections": len(port.connections),
                "refused": port.refused,
                "bytes": port.bytes,
            }
            for port in self._open.values()
        ]

    def is_open(self, host_port: int, container_port: int, access: str) -> bool:
        """Whether the host port is open for this container port and these clients."""
        port = self._open.get(host_port)
        return port is not None and (port.container_port, port.access) == (container_port, access)

    def _listen(self, port: Port) -> None:
        if not self._paused and self._count < self._most:
            self._loop.watch(port.listener.fileno(), IN, lambda events: self._accept(port))

    def _accept(self, port: Port) -> None:
        for _ in range(_ACCEPTS):
            if self._count >= self._most:
                self._stop_listening()  # until a connection ends
                return
            try:
                fd, client = port.listener._accept()  # type: ignore[attr-defined]  # quicker than accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _FULL:
                    self._pause()
                    return
                continue  # the client has gone
            outside = socket.socket(fileno=fd)
            if port.access == ACCESS_HOST or self._clients.accepts(outside, client, port.address):
                self._begin(port, outside)
            else:
                port.refused += 1
                reset(outside)

    def _begin(self, port: Port, outside: socket.socket) -> None:
        outside.setblocking(False)
        self._count += 1

        def gone(connection: Connection) -> None:
            port.connections.discard(connection)
            self._count -= 1
            self._listen_again()

        connection = Connection(
            self._loop, self._pipes, outside, port.container_port, self._inside.request, port.moved, gone
        )
        if not connection.closed:
            port.connections.add(connection)

    def _pause(self) -> None:
        """The descriptors are used up: stop accepting for a moment."""
        self._paused = True
        self._stop_listening()
        self._loop.later(_PAUSE_S, self._resume)

    def _resume(self) -> None:
        self._paused = False
        self._listen_again()

    def _stop_listening(self) -> None:
        for port in self._open.values():
            self._loop.unwatch(port.listener.fileno())

    def _listen_again(self) -> None:
        for port in self._open.values():
            self._listen(port)
