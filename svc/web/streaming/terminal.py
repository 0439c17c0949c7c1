"""A viewer of a terminal: a WebSocket on one side, the workspace's shim on the other.

Subprotocol `svc-terminal.1`: binary messages are the terminal's bytes, text messages JSON. To the client:
`attached` {terminal}, `state` {title, cols, rows}, `skipped` {bytes}, `exit` {reason, exit_code}; from it:
`resize` {cols, rows}. Neither side is read faster than the other takes it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from svc import websocket
from svc.domain.principal import Caller
from svc.domain.workspaces.live.attached import Attached
from svc.web.streaming.stream import READ, WRITE
from svc.web.streaming.websocket import BAD_MESSAGE, ENDED, TAKEN_AWAY, WebSocketStream
from svc.websocket import BINARY, Broken
from svc_helper.wire.limits import TERMINAL_SIDE_MAX

PROTOCOL = "svc-terminal.1"
TOUCH_S = 60.0  # between two notes in the database that somebody types
MESSAGES_AT_ONCE = 16  # then others on the loop have their turn


class TerminalStream(WebSocketStream):
    """One viewer; `held` is the attachment, which ends with it, and the terminal goes on."""

    def __init__(
        self, caller: Caller, require: Callable[[], object], attached: Attached, held: ExitStack
    ) -> None:
        super().__init__(caller, require)
        self.attached, self.held = attached, held
        self.typed = bytearray()  # what the terminal has not taken yet
        self.size: tuple[int, int] | None = None  # likewise

    def opened(self) -> None:
        """Say what it is attached to, then pass on what comes."""
        super().opened()
        self.send_text("attached", {"terminal": self.attached.record})
        self.watch(self.attached.fileno(), READ, self._on_terminal)
        self.later(TOUCH_S, self._touch)

    def receive_bytes(self, content: bytes) -> None:
        """Type; what the terminal does not take keeps the client waiting."""
        self.typed += content
        self._pass_on()

    def receive_control(self, untrusted: dict[str, Any]) -> None:
        """The size of the client's window: of several the last one counts."""
        if untrusted.get("type") != "resize" or set(untrusted) != {"type", "cols", "rows"}:
            raise Broken(BAD_MESSAGE, "no such message")
        self.size = _side(untrusted["cols"]), _side(untrusted["rows"])
        self._pass_on()

    def drained(self) -> None:
        """The client has read everything: go on with the terminal."""
        self._watch_terminal()

    def closed(self) -> None:
        """Leave the terminal."""
        self.loop.in_background(self._leave, lambda _result: None)

    def _on_terminal(self, events: int) -> None:
        if events & WRITE:
            self._pass_on()
        if events & READ:
            self._show()
        self._watch_terminal()

    def _pass_on(self) -> None:
        """Give the terminal what it takes of the client's."""
        if self.size is not None and self.attached.resize(*self.size):
            self.size = None
        if self.typed:
            del self.typed[: self.attached.send(bytes(self.typed))]
        if bool(self.typed) == self.is_reading:
            (self.pause if self.typed else self.resume)()
        self._watch_terminal()

    def _show(self) -> None:
        """Send what the terminal has, as long as the client reads it."""
        for _ in range(MESSAGES_AT_ONCE):
            if not self.is_open or self.is_ending or self.output:
                return
            message = self.attached.receive()
            if message is None:
                return
            kind, content = message
            if kind == "output":
                self.send(websocket.frame(BINARY, content))
            elif kind == "end":
                self._finish(content["reason"], content["exit_code"])
            else:
                self.send_text(kind, content)

    def _finish(self, reason: str, exit_code: int | None) -> None:
        self.send_text("exit", {"reason": reason, "exit_code": exit_code})
        if reason == "exited":
            self.close(ENDED, f"exit code {exit_code}")
        else:
            self.close(TAKEN_AWAY, reason)

    def _watch_terminal(self) -> None:
        if not self.is_open:
            return
        reads = not self.output and not self.is_ending
        writes = bool(self.typed or self.size) and not self.is_ending
        events = (READ if reads else 0) | (WRITE if writes else 0)
        self.watch(self.attached.fileno(), events, self._on_terminal)

    def _touch(self) -> None:
        self.loop.in_background(self.attached.touch, lambda _result: None)
        self.later(TOUCH_S, self._touch)

    def _leave(self) -> None:
        with self.held:
            self.attached.touch()


def _side(untrusted: object) -> int:
    if type(untrusted) is not int or not 1 <= untrusted <= TERMINAL_SIDE_MAX:
        raise Broken(BAD_MESSAGE, f"cols and rows are whole numbers from 1 to {TERMINAL_SIDE_MAX}")
    return untrusted
