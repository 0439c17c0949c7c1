"""Server-sent events on the loop: their form, heartbeats, and what a client is told at the end.

They are sent in chunks, each with whole events: HTTP libraries pass a chunk on when it has come, but
wait for a full buffer of a body that ends with its connection.
"""

from __future__ import annotations

import json
import random
import socket
from collections.abc import Callable
from typing import Any

from flask import Response, copy_current_request_context, g, request

from svc.domain.principal import Caller
from svc.errors import SvcError
from svc.web.gunicorn_worker.detach import DetachedResponse
from svc.web.streaming.stream import Stream

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"
RETRY_MS = 500, 2500  # so that the clients of a restarted service do not come back all at once


class EventStream(Stream):
    """A stream of server-sent events."""

    def __init__(self, caller: Caller, require: Callable[[], object], rid: str) -> None:
        super().__init__(caller, require)
        self.rid = rid
        self.is_chunked = False

    def begin(self, sock: socket.socket, head: bytes, received: bytes, at_end: Callable[[], object]) -> None:
        """Take the connection; without a head, which announces chunks, there are none."""
        self.is_chunked = self.is_chunked and bool(head)
        super().begin(sock, head, received, at_end)

    def send(self, data: bytes) -> bool:
        """Send whole events."""
        return super().send(b"%X\r\n%b\r\n" % (len(data), data) if self.is_chunked else data)

    def end(self) -> None:
        """Close the connection after the last chunk, which says that nothing was lost."""
        if self.is_chunked and self.is_open and not self.is_ending:
            super().send(b"0\r\n\r\n")
        super().end()

    def send_event(self, name: str, data: dict[str, Any], event_id: str = "") -> bool:
        """Send one event."""
        return self.send(event(name, data, event_id))

    def fail(self, error: SvcError) -> None:
        """End with an event `error`, which has the body of an error's answer."""
        self.send_event("error", error.body(self.rid))
        self.end()

    def finish(self) -> None:
        """End with an event `end`: nothing more will come."""
        self.send_event("end", {})
        self.end()

    def heartbeat(self) -> None:
        """A comment shows proxies and clients that the connection is alive."""
        self.send(HEARTBEAT)

    def stopping(self) -> None:
        """Tell the client to come back."""
        self.send(f"retry: {random.randint(*RETRY_MS)}\n".encode() + event("restarting", {}))  # noqa: S311  no secret
        self.end()

    def refused(self, error: SvcError) -> None:
        """Say why it ends."""
        self.fail(error)


def event(name: str, data: dict[str, Any], event_id: str = "") -> bytes:
    """One event, in ASCII: the output of a container may be any bytes."""
    first = f"id: {event_id}\n" if event_id else ""
    return f"{first}event: {name}\ndata: {json.dumps(data)}\n\n".encode("ascii")


def response(create: Callable[[Callable[[], object], str], EventStream]) -> Response:
    """The response of the stream that `create` makes, given its access rule and its request id.

    A HEAD request gets the headers alone.
    """
    headers = {"X-Accel-Buffering": "no"}
    if request.method == "HEAD":
        return Response(iter(()), headers=headers, content_type=MEDIA_TYPE)
    stream = create(copy_current_request_context(g.require), g.rid)
    if request.environ["SERVER_PROTOCOL"] != "HTTP/1.0":
        stream.is_chunked = True
        headers["Transfer-Encoding"] = "chunked"
    return DetachedResponse(stream, 200, headers, MEDIA_TYPE)
