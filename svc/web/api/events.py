"""Events: the stream of what changes, and the list of what is kept."""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Response, request

from svc.actions.access import ACCOUNT, ACCOUNTS, Access
from svc.domain import events
from svc.domain.principal import Caller
from svc.errors import invalid_field
from svc.web.access import route
from svc.web.schemas.live.events import EVENT_ID_MAX, EVENTS, EventsQuery, HistoryQuery
from svc.web.streaming import event_feed, sse

blueprint = Blueprint("events", __name__)


@route(
    blueprint, "GET", "/events", Access(ACCOUNT, pat=True, stream=True),
    query=EventsQuery(), gives=sse.MEDIA_TYPE,
)  # fmt: skip
def follow(caller: Caller, query: dict[str, Any]) -> Response:
    """What changes, as server-sent events, each within a moment of its commit.

    Begins with what changes from now on, or with what came after the id in the header Last-Event-ID or in
    `after`; the ids hold over a restart of the service. `gap`: events after that id are no longer
    kept; `restarting`: the service stops, come back; `error`: access has ended.
    """
    view = events.view_of(caller, everything=query["all"], types=query["type"])
    after = _last_event_id(query.get("after"))
    return sse.response(lambda require, rid: event_feed.Events(caller, require, rid, view, after))


@route(blueprint, "GET", "/events/history", ACCOUNTS, query=HistoryQuery(), answer=EVENTS)
def history(caller: Caller, query: dict[str, Any]) -> dict[str, Any]:
    """The events of the last 30 days, the newest first."""
    view = events.view_of(caller, everything=query["all"], types=query["type"])
    return events.page_of(view, query["page"], query["after"], query["subject"])


def _last_event_id(after: int | None) -> int | None:
    """The header of a client that comes back, which repeats the URL of its first request, or `after`."""
    header = request.headers.get("Last-Event-ID", "")
    if not header:
        return after
    if not (header.isascii() and header.isdigit() and int(header[:20]) <= EVENT_ID_MAX):
        raise invalid_field("Last-Event-ID", "invalid", "Not the id of an event.")
    return int(header)
