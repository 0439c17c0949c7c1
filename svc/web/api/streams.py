"""What answers with a stream; `svc api` is refused by endpoint.

Server-sent events: `event: log` with {"text"}, a comment as a heartbeat, and at
last `event: end`, or `event: error` with the body of an error. A stream holds
one of the caller's long calls, ends with the connection, at once with the
server, and when its reader may read it no longer.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response, copy_current_request_context, g

from svc.domain import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import logs
from svc.errors import Conflict, Maintenance, SvcError
from svc.web.access import ACCOUNT, MEMBER, Access, reserve, route
from svc.web.gunicorn_worker import shutdown
from svc.web.schemas.logs import FollowQuery

blueprint = Blueprint("streams", __name__)

OWN = Access(MEMBER, pat=True, stream=True)
# The owner's alone, as exec is: an administrator is told so, not root_not_allowed.
REACHES_IN = Access(ACCOUNT, pat=True, stream=True)
EVENTS = "text/event-stream"
HEARTBEAT = ": still here\n\n"
STANDING_S = 15.0  # after so long its reader is asked for anew: a token may be revoked, an account disabled


@route(
    blueprint, "GET", "/workspaces/<ref>/logs/stream", OWN,
    query=FollowQuery(), gives=EVENTS,
)  # fmt: skip
def follow_logs(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """The newest lines of the container, or of a launcher, and what follows, as server-sent events.

    `log` has {"text"}; `end` comes when the container or the launcher has ended, `error` when the stream
    cannot go on.
    """
    with ExitStack() as held:
        held.enter_context(long_calls.counted(caller))
        pieces = logs.follow(
            caller, ref, query["tail"], query.get("launcher"), hangup_fds=shutdown.descriptors()
        )
        held.callback(pieces.close)  # which cancels the call
        return _stream(_log_events(pieces, g.rid, copy_current_request_context(g.require)), held)


def _stream(events: Iterator[str], held: ExitStack) -> Response:
    """The answer; what it needs is held to its end."""
    response = Response(events, content_type=EVENTS)
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(held.pop_all().close)
    return response


def _log_events(pieces: Iterator[str | None], rid: str, require: Callable[[], object]) -> Iterator[str]:
    """`require` asks anew whether the reader may read; by then the request itself is long over."""
    asked_at = time.monotonic()
    try:
        for piece in pieces:
            if time.monotonic() - asked_at > STANDING_S:
                require()
                asked_at = time.monotonic()
            yield HEARTBEAT if piece is None else _event("log", {"text": piece})
    except Conflict:
        if shutdown.begun():
            yield _event("error", _stopped().body(rid))
    except SvcError as error:
        yield _event("error", error.body(rid))
    else:
        yield _event("end", {})


def _stopped() -> SvcError:
    return Maintenance("the service is being stopped; it starts again in a moment", retry_after_s=5)


def _event(name: str, data: dict[str, Any]) -> str:
    """One event, in ASCII: a container writes what it likes, also what is no text."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"


reserve(blueprint, "GET", "/events", Access(ACCOUNT, pat=True, stream=True), "The event stream")
reserve(blueprint, "GET", "/workspaces/<ref>/monitor/stream", OWN, "The live monitor")
reserve(blueprint, "GET", "/workspaces/<ref>/terminal", REACHES_IN, "The terminal")
