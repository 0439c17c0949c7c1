"""Server-sent events on the loop: their form, heartbeats, and what a client is told at the end."""

from __future__ import annotations

import json
import random
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
    return DetachedResponse(stream, 200, headers, MEDIA_TYPE)
