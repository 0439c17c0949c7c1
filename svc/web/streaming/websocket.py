"""WebSockets: the handshake, and a stream of messages. callers.credentials checks a page's Origin.

Messages are bounded by `message_max`, output by the stream's output_max. A ping every PING_S finds
clients that are gone; one that says nothing for SILENCE_S loses the connection. The service's own
close codes are in docs/terminals.md.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from flask import Response

from svc import websocket
from svc.domain.principal import Caller
from svc.errors import InvalidRequest, SvcError
from svc.web.gunicorn_worker.detach import DetachedResponse
from svc.web.streaming.stream import Stream
from svc.websocket import BINARY, CLOSE, NORMAL, PING, PONG, RESTART, TEXT, Broken, Receiver
from svc_helper.wire import strict_json

KEY = "svc.upgrade"  # of the environ
MESSAGE_MAX = 64 * 1024
CONTROL_MEMBERS_MAX = 64
CONTROL_DEPTH_MAX = 4  # of the JSON in a text message
FRAMES_AT_ONCE = 64  # of one client; then others on the loop have their turn
PING_S, SILENCE_S = 20.0, 70.0
ENDED, TAKEN_AWAY, ACCESS_LOST, BAD_MESSAGE, FAILED = 4000, 4001, 4003, 4400, 4500


def take(environ: dict[str, Any]) -> None:
    """Hide a handshake from the router, which has other rules for WebSockets, and other errors."""
    upgrade = environ.pop("HTTP_UPGRADE", None)
    if upgrade is not None:
        environ[KEY] = upgrade


def accept(environ: Mapping[str, Any], protocol: str) -> dict[str, str]:
    """The headers that answer a handshake for this protocol; raises InvalidRequest for none."""
    tokens = {token.strip().lower() for token in environ.get("HTTP_CONNECTION", "").split(",")}
    upgrades = environ.get(KEY, "").strip().lower() == "websocket" and "upgrade" in tokens
    if not upgrades or environ["REQUEST_METHOD"] != "GET" or environ["SERVER_PROTOCOL"] != "HTTP/1.1":
        raise InvalidRequest("this path is a WebSocket: the request has no handshake")
    if environ.get("HTTP_SEC_WEBSOCKET_VERSION") != websocket.VERSION:
        raise InvalidRequest(f"the WebSocket's version is not {websocket.VERSION}")
    key = environ.get("HTTP_SEC_WEBSOCKET_KEY", "")
    if not websocket.is_key(key):
        raise InvalidRequest("the WebSocket's handshake has no valid key")
    asked = [name.strip() for name in environ.get("HTTP_SEC_WEBSOCKET_PROTOCOL", "").split(",")]
    if protocol not in asked:
        raise InvalidRequest(f"the WebSocket does not offer the subprotocol {protocol}")
    return {
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        "Sec-WebSocket-Accept": websocket.answer_to(key),
        "Sec-WebSocket-Protocol": protocol,
    }


def response(stream: WebSocketStream, headers: dict[str, str]) -> Response:
    """The response that gives the connection to the stream."""
    return DetachedResponse(stream, 101, headers, "")


def text(message: Mapping[str, Any]) -> bytes:
    """A text frame with a message of ours."""
    return websocket.frame(TEXT, json.dumps(message, separators=(",", ":")).encode("ascii"))


class WebSocketStream(Stream):
    """A stream whose client sends messages."""

    message_max = MESSAGE_MAX

    def __init__(self, caller: Caller, require: Callable[[], object]) -> None:
        super().__init__(caller, require)
        self.receiver = Receiver(self.message_max, masked=True)
        self.received_at = 0.0

    # --- for subclasses ---------------------------------------------------------------------

    def receive_bytes(self, content: bytes) -> None:
        """Called with a binary message."""

    def receive_control(self, untrusted: dict[str, Any]) -> None:
        """Called with a text message, which is a JSON object; raises Broken for one that makes no sense."""

    def send_text(self, kind: str, facts: Mapping[str, Any]) -> bool:
        """Send a text message of ours."""
        return self.send(text({"type": kind, **facts}))

    def close(self, code: int, reason: str) -> None:
        """Say why, and end."""
        self.send(websocket.frame(CLOSE, websocket.closing(code, reason)))
        self.end()

    # --- what a stream does -------------------------------------------------------------------

    def opened(self) -> None:
        """Begin to look for clients that are gone."""
        self.received_at = time.monotonic()
        self.later(PING_S, self._ping)

    def received(self, data: bytes) -> None:
        """Take the messages in these bytes."""
        self.received_at = time.monotonic()
        self._take_frames(data)

    def rested(self) -> None:
        """Take those that were left."""
        self._take_frames(b"")

    def stopping(self) -> None:
        """Make the client come back."""
        self.close(RESTART, "the service restarts")

    def refused(self, error: SvcError) -> None:
        """Say that the access is lost."""
        self.close(ACCESS_LOST, error.code)

    def _take_frames(self, data: bytes) -> None:
        """Take some messages; nothing more is read before the rest of them were."""
        self.is_unfinished = False
        try:
            for kind, content in self.receiver.feed(data, FRAMES_AT_ONCE):
                if not self.is_open or self.is_ending:
                    return
                self._take(kind, content)
        except Broken as broken:
            self.close(broken.code, broken.reason)
        else:
            self.is_unfinished = self.receiver.has_more

    def _take(self, kind: int, content: bytes) -> None:
        if kind == BINARY:
            self.receive_bytes(content)
        elif kind == TEXT:
            self.receive_control(_object(content))
        elif kind == PING:
            self.send(websocket.frame(PONG, content))
        elif kind == CLOSE:
            code = websocket.close_code(content)
            self.close(NORMAL if code == websocket.NO_CODE else code, "")

    def _ping(self) -> None:
        if self.is_ending:
            return
        if self.is_reading and time.monotonic() > self.received_at + SILENCE_S:
            self.abort()
            return
        self.send(websocket.frame(PING, b""))
        self.later(PING_S, self._ping)


def _object(content: bytes) -> dict[str, Any]:
    try:
        return strict_json.load_object(content, depth_max=CONTROL_DEPTH_MAX, members_max=CONTROL_MEMBERS_MAX)
    except strict_json.Malformed as error:
        raise Broken(BAD_MESSAGE, f"the message {error}") from None
