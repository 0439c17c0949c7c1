"""Responses that are streams; `svc api` is refused by endpoint.

Server-sent events: `event: log` with {"text"}, `event: marker`, a comment as a heartbeat,
and finally `event: end`, or `event: error` with the body of an error. A stream is
one of the caller's long calls. It ends with the connection, on shutdown, and
when its reader loses access.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response, copy_current_request_context, g, request

from svc.domain import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import logs, monitor
from svc.errors import Conflict, InvalidRequest, SvcError
from svc.limits import ACCESS_RECHECK_S
from svc.web import outputs
from svc.web.access import MEMBER, Access, route
from svc.web.gunicorn_worker import shutdown, transfers
from svc.web.schemas.logs import FollowQuery, RawLogQuery
from svc.web.streaming import monitors, sse

blueprint = Blueprint("streams", __name__)

OWN = Access(MEMBER, pat=True, stream=True)
RAW = OWN._replace(ticket=True)
EVENTS = "text/event-stream"
BYTES = "application/octet-stream"
HEARTBEAT = ": still here\n\n"


@route(
    blueprint, "GET", "/workspaces/<ref>/logs/stream", OWN,
    query=FollowQuery(), gives=EVENTS,
)  # fmt: skip
def follow_logs(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """What is kept of the output of the container, or of a launcher, and all further one, as events.

    Server-sent: `log` has {"text"}, `marker` too: what the service noted of a launcher. `end` follows
    the exit of the container or launcher, `error` a failure.
    """
    with ExitStack() as held:
        held.enter_context(long_calls.counted(caller))
        pieces = logs.follow(
            caller, ref, query.get("tail"), query.get("launcher"),
            times=query["timestamps"], hangup_fds=shutdown.descriptors(),
        )  # fmt: skip
        held.callback(pieces.close)  # which cancels the call
        return _stream(_log_events(pieces, g.rid, copy_current_request_context(g.require)), held)


@route(blueprint, "GET", "/workspaces/<ref>/monitor/stream", OWN, gives=EVENTS)
def follow_monitor(caller: Caller, ref: str) -> Response:
    """What a running workspace uses, every two seconds, as events.

    Server-sent: `sample` is what `monitor` answers; `end` follows the end of the workspace, `restarting` a
    stop of the service, `error` a failure. All who watch a workspace share its samples.
    """
    workspace_id = monitor.watchable(caller, ref)
    return sse.response(lambda require, rid: monitors.Monitor(caller, require, rid, workspace_id))


@route(blueprint, "GET", "/workspaces/<ref>/logs/raw", RAW, query=RawLogQuery(), gives=BYTES)
def raw_logs(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """All that is kept of the output of the container, or of a launcher, byte for byte.

    Headers: X-Svc-Log-Start, to continue an interrupted answer; X-Svc-Log-Older-Gone, whether output
    that was asked for is no longer kept; X-Svc-Log-Markers, as `markers` of the JSON answer.
    """
    if request.environ["SERVER_PROTOCOL"] == "HTTP/1.0":
        raise InvalidRequest("output is sent in chunks, which HTTP/1.0 does not support; use HTTP/1.1")
    with ExitStack() as held:
        log = held.enter_context(
            logs.opened(
                caller, ref, query.get("tail"), query.get("launcher"),
                start=query.get("start", ""), skip=query["skip"], times=query["timestamps"],
                hangup_fds=shutdown.descriptors(),
            )
        )  # fmt: skip
        if request.method == "HEAD":
            response = Response(iter(()), content_type=BYTES)  # of unknown length
        else:
            log.begin()
            response = transfers.Outgoing(log.transfer, {}, None, log.end).response(held, BYTES)
        response.headers["X-Svc-Log-Start"] = log.start
        response.headers["X-Svc-Log-Older-Gone"] = str(log.older_gone).lower()
        response.headers["X-Svc-Log-Markers"] = json.dumps(log.markers)
        name = "-".join(filter(None, (ref, query.get("launcher"))))
        response.headers.update(outputs.attachment(f"{name}.log".encode()))
        return response


def _stream(events: Iterator[str], held: ExitStack) -> Response:
    """The response; `held` is closed at its end."""
    response = Response(events, content_type=EVENTS)
    response.headers["X-Accel-Buffering"] = "no"
    response.call_on_close(held.pop_all().close)
    return response


def _log_events(
    pieces: Iterator[logs.Piece | None], rid: str, require: Callable[[], object]
) -> Iterator[str]:
    """The events; `require` applies the access rule again, outside the request."""
    checked_at = time.monotonic()
    try:
        for piece in pieces:
            if time.monotonic() - checked_at > ACCESS_RECHECK_S:
                require()
                checked_at = time.monotonic()
            yield HEARTBEAT if piece is None else _event(piece.kind, {"text": piece.text})
    except Conflict:
        if shutdown.begun():
            yield _event("error", shutdown.error().body(rid))
    except SvcError as error:
        yield _event("error", error.body(rid))
    else:
        yield _event("end", {})


def _event(name: str, data: dict[str, Any]) -> str:
    """One event, in ASCII: the output of a container may be any bytes."""
    return f"event: {name}\ndata: {json.dumps(data)}\n\n"
