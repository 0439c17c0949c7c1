"""The client's end of a WebSocket over the host-local socket: messages both ways, and nothing that waits."""

from __future__ import annotations

from svc import websocket
from svc.client import transport
from svc.websocket import CLOSE, PING, PONG, Broken, Receiver
from svc_helper.wire import quick_json

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

MESSAGE_MAX = 1024 * 1024
PART = 64 * 1024
UNSENT_MAX = 256 * 1024  # then the caller reads no more of what it wants to send


class WebSocket:
    """An open WebSocket; `closed` is the code of its close frame, 0 until one comes."""

    def __init__(self, upgrade: transport.Upgrade) -> None:
        """Open it; raises the service's error."""
        self._connection, self._early = upgrade.finish()
        self._receiver = Receiver(MESSAGE_MAX, masked=False)
        self._output = bytearray()
        self.closed, self.reason = 0, ""

    def fileno(self) -> int:
        """The descriptor to poll."""
        return self._connection.fileno()

    @property
    def unsent(self) -> int:
        """Bytes that wait for the service: poll for writing, and call flush()."""
        return len(self._output)

    @property
    def is_full(self) -> bool:
        """Whether enough waits for the service."""
        return len(self._output) >= UNSENT_MAX

    def send(self, kind: int, data: bytes) -> None:
        """Send a message, as far as there is room now."""
        self._output += websocket.frame(kind, data, mask=True)
        self.flush()

    def send_json(self, message: dict[str, Any]) -> None:
        """Send a text message."""
        self.send(websocket.TEXT, quick_json.dumps(message).encode())

    def flush(self) -> None:
        """Send what waits, as far as there is room.

        To a service that has closed the connection nothing is sent: it may have said why, and messages()
        has that, and the end.
        """
        while self._output:
            try:
                count = self._connection.send(self._output[:PART])
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._output.clear()
                return
            del self._output[:count]

    def messages(self) -> Iterator[tuple[int, bytes]]:
        """The data messages that are here; raises EOFError at the end, OSError, Broken."""
        data, self._early = self._early, b""
        while True:
            for kind, content in self._receiver.feed(data):
                if kind == PING:
                    self.send(PONG, content)
                elif kind == CLOSE:
                    self.closed, self.reason = websocket.close_code(content), websocket.close_reason(content)
                    raise EOFError
                elif kind != PONG:
                    yield kind, content
            try:
                data = self._connection.recv(PART)
            except BlockingIOError:
                return
            except ConnectionResetError:  # closed while something of ours was unread there
                raise EOFError from None
            if not data:
                raise EOFError

    def close(self) -> None:
        """Say goodbye if there is room for it, and close."""
        try:
            if not self.closed:
                self.send(CLOSE, websocket.closing(websocket.NORMAL))
        except OSError:
            pass
        self._connection.close()


def read_json(content: bytes) -> dict[str, Any]:
    """A text message of the service; raises Broken."""
    try:
        value = quick_json.loads(content.decode())
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise Broken(websocket.PROTOCOL_ERROR, "not a JSON object")
    return value
