"""The shim's control socket: one request a connection, from the user's agent.

A message is {"do", "run", "args"}, with descriptors for some; the answer is
{"ok": true, ...} or {"ok": false, "code", "message"}, at once or when the thing
is done. A request that means another run of the container is answered `stale`.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Callable
from typing import Any

from svc_helper.agent.calls import Failure
from svc_helper.shim.loop import IN, Loop, Timer
from svc_helper.wire.protocol import ProtocolError, close_all, receive, send

_ASK_S = 10  # for a request, once connected
_PAUSE_S = 0.2
Do = Callable[["Request"], None]


class Request:
    """One request, to be answered once: by answer() or fail()."""

    def __init__(self, sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
        self._sock = sock
        self.args = args
        self.fds = fds  # closed by the end of the request, unless taken out

    def answer(self, data: dict[str, Any]) -> None:
        """It is done."""
        self._end({"ok": True, "data": data})

    def fail(self, failure: Failure) -> None:
        """It is not."""
        self._end({"ok": False, "code": failure.code, "message": failure.message})

    def _end(self, message: dict[str, Any]) -> None:
        close_all(self.fds)
        self.fds = []
        try:
            send(self._sock, message, wait=False)
        except (OSError, ProtocolError):
            pass  # whoever asked has gone
        self._sock.close()


class Control:
    """The listener and its connections."""

    def __init__(self, loop: Loop, listener: socket.socket, run: str, table: dict[str, Do]) -> None:
        self._loop, self._listener, self._run, self._table = loop, listener, run, table
        self.answered = 0
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
        if struct.unpack("3i", peer)[1] != os.geteuid():
            sock.close()
            return
        sock.setblocking(True)  # protocol.receive() says itself that it does not wait
        patience = self._loop.later(_ASK_S, lambda: self._drop(sock))
        self._loop.watch(sock.fileno(), IN, lambda events: self._take(sock, patience))

    def _drop(self, sock: socket.socket) -> None:
        self._loop.unwatch(sock.fileno())
        sock.close()

    def _take(self, sock: socket.socket, patience: Timer) -> None:
        patience.drop()
        self._loop.unwatch(sock.fileno())
        try:
            frame = receive(sock, wait=False)
        except (ProtocolError, EOFError, OSError):
            sock.close()
            return
        message = frame.message
        args = message.get("args")
        request = Request(sock, args if isinstance(args, dict) else {}, frame.fds)
        self.answered += 1
        do = self._table.get(str(message.get("do")))
        if message.get("run") != self._run:
            request.fail(Failure("stale", "this shim is of another run"))
        elif do is None:
            request.fail(Failure("protocol", "the shim does not know this request"))
        else:
            self._do(do, request)

    @staticmethod
    def _do(do: Do, request: Request) -> None:
        try:
            do(request)
        except Failure as failure:
            request.fail(failure)
        except (KeyError, TypeError, ValueError):
            request.fail(Failure("protocol", "the shim does not understand this request"))
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            request.fail(
                Failure("storage_full", "there is no space left on the disk")
                if full
                else Failure("failed", "the shim could not do it")
            )

    def close(self) -> None:
        """Take no more requests."""
        self._loop.unwatch(self._listener.fileno())
        self._listener.close()
