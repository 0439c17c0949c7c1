"""A viewer of a workspace's terminal: moves bytes between it and the user's own, and comes back by itself.

The terminal is the workspace's: it runs on when this ends, for whatever reason. After a restart of the
service the viewer attaches again.
"""

from __future__ import annotations

import os
import select
import time

from svc.cli.ws import tty
from svc.cli.ws.attaching import attach, size
from svc.cli.ws.detaching import Detector
from svc.client import transport
from svc.client.websocket import WebSocket, read_json
from svc.commandline.output import visible
from svc.errors import BadAnswer, SvcError, Unreachable
from svc.websocket import BINARY, Broken

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

TYPED_MAX = 32 * 1024  # bytes of one read of the keyboard, or of what was pasted
RETURN_S = 60.0  # for the service to come back
RETRY_S = 0.5
CLEAR = b"\x1b[!p\x1b[H\x1b[2J\x1b[3J"  # before the screen is shown anew
ENDED, TAKEN_AWAY, ACCESS_LOST = 4000, 4001, 4003
CTRL_C = b"\x03"


class Result:
    """How a viewing ended: "detached", "lost", or the terminal's own reason and exit code."""

    def __init__(self, reason: str, exit_code: int | None = None, message: str = "") -> None:
        self.reason = reason
        self.exit_code = exit_code
        self.message = message


class Viewer:
    """One viewing, over as many connections as it takes."""

    def __init__(self, path: str, sequence: bytes, terminal: str, upgrade: transport.Upgrade) -> None:
        """Attach, before the user's terminal is touched; raises the service's error."""
        self.path = path
        self.terminal = terminal
        self.keys = Detector(sequence)
        self.result: Result | None = None
        self.connection = WebSocket(upgrade)

    def run(self) -> Result:
        """View until the end; the terminal is put back before this returns or raises."""
        with tty.RawTerminal() as screen:
            while self.result is None:
                try:
                    self._view(screen)
                except (EOFError, OSError, Broken) as error:
                    self._lose(error)
                finally:
                    self.connection.close()
                if self.result is None:
                    self._return(screen)
            return self.result

    def _view(self, screen: tty.RawTerminal) -> None:
        """Move bytes until there is a result; raises what breaks the connection."""
        connection = self.connection
        self._receive(screen, connection)  # what came with the handshake
        while self.result is None:
            if screen.resized:
                screen.resized = False
                cols, rows = size()
                connection.send_json({"type": "resize", "cols": cols, "rows": rows})
            poll = select.poll()
            poll.register(screen, select.POLLIN)
            poll.register(connection, select.POLLIN | (select.POLLOUT if connection.unsent else 0))
            if not connection.is_full:
                poll.register(0, select.POLLIN)
            ready = dict(poll.poll())
            if screen.fileno() in ready:
                screen.wakened()
            if connection.fileno() in ready:
                connection.flush()
                self._receive(screen, connection)
            if 0 in ready and self.result is None:
                self._type(connection)

    def _type(self, connection: WebSocket) -> None:
        try:
            typed = os.read(0, TYPED_MAX)
        except OSError:
            typed = b""  # the window is gone, and this process gets SIGHUP if it is its own
        rest = self.keys.pass_on(typed)
        if rest:
            connection.send(BINARY, rest)
        if self.keys.found or not typed:
            self.result = Result("detached")

    def _receive(self, screen: tty.RawTerminal, connection: WebSocket) -> None:
        for kind, content in connection.messages():
            if kind == BINARY:
                screen.show(content)
            else:
                self._take(screen, read_json(content))

    def _take(self, screen: tty.RawTerminal, message: dict[str, Any]) -> None:
        kind = message.get("type")
        if kind == "attached":
            record = message.get("terminal")
            self.terminal = str(record.get("id", "")) if isinstance(record, dict) else ""
        elif kind == "skipped":
            screen.show(CLEAR)
        elif kind == "exit":
            code = message.get("exit_code")
            self.result = Result(str(message.get("reason")), code if isinstance(code, int) else None)

    def _lose(self, error: Exception) -> None:
        """Whether the end of the connection is the end of the viewing."""
        code, reason = self.connection.closed, self.connection.reason
        if self.result is None and code in (ENDED, TAKEN_AWAY, ACCESS_LOST):
            self.result = Result("refused" if code == ACCESS_LOST else "lost", message=visible(reason))
        elif self.result is None and not self.terminal:
            raise BadAnswer("the service closed the terminal's connection without a word") from error

    # --- coming back ------------------------------------------------------------------------

    def _return(self, screen: tty.RawTerminal) -> None:
        """Attach again; a result if that fails for good, or the user has enough."""
        self._say("the connection to the service is lost; the terminal runs on. Attaching again ...")
        ends_at = time.monotonic() + RETURN_S
        while self.result is None:
            if self._wants_to_leave():
                self.result = Result("detached")
                return
            try:
                self.connection = WebSocket(attach(self.path, self.terminal))
            except SvcError as error:
                is_final = not (error.retryable or isinstance(error, Unreachable | BadAnswer))
                if is_final or time.monotonic() > ends_at:
                    self.result = Result("lost", message=visible(error.message))
            else:
                screen.resized = True
                screen.show(CLEAR)
                return

    def _wants_to_leave(self) -> bool:
        """Wait a moment; whether meanwhile the detach keys, or Ctrl-C, were typed."""
        if not select.select([0], [], [], RETRY_S)[0]:
            return False
        typed = os.read(0, TYPED_MAX)
        self.keys.pass_on(typed)
        return self.keys.found or CTRL_C in typed or not typed

    def _say(self, text: str) -> None:
        tty.write(f"\r\n\x1b[0m[svc: {text}]\r\n".encode())
