"""The shim's control socket: one request per connection, from the user's agent.

A request is {"do", "run", "args"}, some with descriptors; the reply is {"ok":
true, "data"} or {"ok": false, "code", "message"}, sent at once or when the work
is done. The reply to a request for another run of the container is `stale`.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable

from svc_helper.agent.calls import Failure
from svc_helper.shim.loop import IN, Loop, Timer
from svc_helper.wire.protocol import ProtocolError, close_all, receive, send
from svc_helper.wire.quick_typing import Any

_REQUEST_S = 10  # from the connection to the request
_PAUSE_S = 0.2
Do = Callable[["Request"], None]


class Request:
    """One request; answer() or fail() sends its one reply."""

    def __init__(self, sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
        self._sock = sock
        self.args = args
        self.fds = fds  # closed with the request, unless removed from the list

    def answer(self, data: dict[str, Any]) -> None:
        """Send the reply of a successful request."""
        self._end({"ok": True, "data": data})

    def fail(self, failure: Failure) -> None:
        """Send the reply of a failed request."""
        self._end({"ok": False, "code": failure.code, "message": failure.message})

    def _end(self, message: dict[str, Any]) -> None:
        close_all(self.fds)
        self.fds = []
        try:
            send(self._sock, message, wait=False)
        except (OSError, ProtocolError):
            pass  # the agent has gone
        self._sock.close()


def sent_socket(fds: list[int], kind: int) -> socket.socket:
    """The one Unix socket of this kind that came with a request; raises Failure, and the rest is closed."""
    if len(fds) != 1:
        raise Failure("protocol", "no socket came with the request")
    sock = socket.socket(fileno=fds.pop())
    if sock.family != socket.AF_UNIX or sock.type != kind:
        sock.close()
        raise Failure("protocol", "the socket is none of such a pair")
    return sock


class Together:
    """The reply path of requests that the shim makes of its own parts; calls `done` after the last reply."""

    def __init__(self, parts: int, done: Callable[[], None]) -> None:
        self._left = parts
        self._done = done
        if not parts:
            done()

    def answer(self, data: dict[str, Any]) -> None:
        """Take the reply of one part."""
        self._left -= 1
        if not self._left:
            self._done()

    def fail(self, failure: Failure) -> None:
        """Take the refusal of one part, which has logged it."""
        self.answer({})


class Control:
    """The listener and its connections."""

    def __init__(self, loop: Loop, listener: socket.socket, run: str, table: dict[str, Do]) -> None:
        self._loop, self._listener, self._run, self._table = loop, listener, run, table
        self.requests = 0
        listener.setblocking(False)
        self._listen()

    def _listen(self) -> None:
        self._loop.watch(self._listener.fileno(), IN, self._accept)

    def _accept(self, events: int) -> None:
        try:
            sock, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError:
            self._loop.unwatch(self._listener.fileno())
            self._loop.later(_PAUSE_S, self._listen)
            return
        peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        if struct.unpack("i2I", peer)[1] != os.geteuid():
            sock.close()
            return
        sock.setblocking(True)  # protocol.receive() itself does not block
        timeout = self._loop.later(_REQUEST_S, lambda: self._drop(sock))
        self._loop.watch(sock.fileno(), IN, lambda events: self._receive(sock, timeout))

    def _drop(self, sock: socket.socket) -> None:
        self._loop.unwatch(sock.fileno())
        sock.close()

    def _receive(self, sock: socket.socket, timeout: Timer) -> None:
        timeout.drop()
        self._loop.unwatch(sock.fileno())
        try:
            frame = receive(sock, wait=False)
        except (ProtocolError, EOFError, OSError):
            sock.close()
            return
        message = frame.message
        args = message.get("args")
        request = Request(sock, args if isinstance(args, dict) else {}, frame.fds)
        self.requests += 1
        do = self._table.get(str(message.get("do")))
        if message.get("run") != self._run:
            request.fail(Failure("stale", "this shim serves another run of the container"))
        elif do is None:
            request.fail(Failure("protocol", "unknown request to the shim"))
        else:
            self._do(do, request)

    @staticmethod
    def _do(do: Do, request: Request) -> None:
        try:
            do(request)
        except Failure as failure:
            request.fail(failure)
        except (KeyError, TypeError, ValueError, ProtocolError):
            request.fail(Failure("protocol", "malformed request to the shim"))
        except OSError as error:
            request.fail(Failure.of_os_error(error, "a system call of the shim failed"))

    def close(self) -> None:
        """Close the listener."""
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
