"""Responses that are streams; `svc api` is refused by endpoint.

Server-sent events are on the loop of svc.web.streaming: they use no thread, and count apart from long calls.
"""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from typing import Any

from flask import Blueprint, Response, request

from svc.actions.access import MEMBER, Access
from svc.domain.principal import Caller
from svc.domain.workspaces import logs, monitor
from svc.domain.workspaces.live import followed
from svc.domain.workspaces.live.followed import Place
from svc.errors import InvalidRequest, invalid_field
from svc.web import outputs
from svc.web.access import route
from svc.web.gunicorn_worker import shutdown, transfers
from svc.web.schemas.live.logs import FollowQuery, RawLogQuery
from svc.web.streaming import followed_logs, monitors, sse

blueprint = Blueprint("streams", __name__)

OWN = Access(MEMBER, pat=True, stream=True)
RAW = OWN._replace(ticket=True)
EVENTS = sse.MEDIA_TYPE
BYTES = "application/octet-stream"


@route(
    blueprint, "GET", "/workspaces/<ref>/logs/stream", OWN,
    query=FollowQuery(), gives=EVENTS,
)  # fmt: skip
def follow_logs(caller: Caller, ref: str, query: dict[str, Any]) -> Response:
    """What is kept of the output of the container, or of a launcher, and all further one, as events.

    Server-sent: `log` has {"text", "time", "stream"}, lines or a part of one, of one moment; `marker` too:
    what the service noted of a launcher. An id in the header Last-Event-ID or in `after` goes on after that
    event, also over a restart of the service. `end` follows the exit of the container or launcher,
    `restarting` a stop of the service, `error` a failure.
    """
    after = _last_place(query.get("after"))
    source = followed.source_of(caller, ref, query.get("tail"), query.get("launcher"), after)
    return sse.response(
        lambda require, rid: followed_logs.opened(caller, require, rid, source, times=query["timestamps"])
    )


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


def _last_place(after: str | None) -> Place | None:
    """The header of a client that comes back, which repeats the URL of its first request, or `after`."""
    header = request.headers.get("Last-Event-ID", "")
    if header and not re.fullmatch(followed.PLACE, header):
        raise invalid_field("Last-Event-ID", "invalid", "Not the id of an event of a log.")
    text = header or after
    return followed.place_of(text) if text else None
