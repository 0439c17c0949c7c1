"""Events: queries and records."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.domain.events import TYPES
from svc.web.schemas.fields import QueryFlag, QueryNumber, Text
from svc.web.schemas.pages import ListQuery, choices_field, page_of

EVENT_ID_MAX = 2**53 - 1  # which every JSON reader can hold


class EventsQuery(Schema):
    """Which events, and from where on."""

    after = QueryNumber(
        0,
        EVENT_ID_MAX,
        metadata={"description": "events after this id; 0: all that are kept; default: new ones"},
    )
    type = choices_field(TYPES)
    all = QueryFlag(
        load_default=False,
        metadata={"description": "administrators: the events of all users, others' without data"},
    )


class HistoryQuery(ListQuery):
    """A page of kept events."""

    after = QueryNumber(
        0, EVENT_ID_MAX, load_default=0, metadata={"description": "events after this id only"}
    )
    type = choices_field(TYPES)
    subject = Text(
        256, load_default="", metadata={"description": "events of the thing with this id or name only"}
    )
    all = QueryFlag(
        load_default=False,
        metadata={"description": "administrators: the events of all users, others' without data"},
    )


class EventActor(Schema):
    """Who did it; nobody, where the service itself found out."""

    user = fields.String(allow_none=True)
    via = fields.String(allow_none=True, metadata={"description": "socket, session, token, worker or admin"})


class EventSubject(Schema):
    """What it happened to."""

    type = fields.String(
        metadata={"description": "workspace, operation, image, launcher, template, token, host, registries"}
    )
    id = fields.String()
    name = fields.String(metadata={"description": "of that moment"})


class Event(Schema):
    """One change."""

    id = fields.Integer()
    ts = fields.DateTime()
    type = fields.String(metadata={"description": "noun.verb"})
    owner = fields.String(allow_none=True, metadata={"description": "whose thing it is"})
    actor = fields.Nested(EventActor)
    subject = fields.Nested(EventSubject)
    reason = fields.String(
        allow_none=True, metadata={"description": "such as the status_reason of a workspace"}
    )
    data = fields.Dict(
        allow_none=True, metadata={"description": "by type, see docs/api.md; null for other users'"}
    )


EVENTS = page_of(Event, "EventPage")
