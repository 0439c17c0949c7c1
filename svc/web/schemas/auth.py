"""Logins and sessions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import Schema, ValidationError, fields

from svc.domain.accounts.passwords import RAW_BYTES_MAX
from svc.limits import CREDENTIALS_BODY_MAX
from svc.web.schemas.pages import page_of


class Secret(fields.String):
    """A secret as typed: any characters, RAW_BYTES_MAX bytes at most.

    Further checks follow behind the throttle, so that all wrong guesses get the same answer.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(required=True, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> str:
        if type(value) is not str:
            raise ValidationError("Not a string.")
        if len(value.encode()) > RAW_BYTES_MAX:
            raise ValidationError(f"Longer than {RAW_BYTES_MAX} bytes.")
        return value


class Credentials(Schema):
    """A user name and the service password (not the Linux one)."""

    body_max = CREDENTIALS_BODY_MAX

    username = Secret()
    password = Secret(metadata={"format": "password"})


class SessionRecord(Schema):
    """A session of a browser."""

    id = fields.String()
    address = fields.String(metadata={"description": "where the login came from"})
    browser = fields.String(
        metadata={"description": "name and system by a fixed list; empty for sessions of older releases"}
    )
    created_at = fields.DateTime()
    last_used_at = fields.DateTime(metadata={"description": "to the minute"})
    idle_ends_at = fields.DateTime(metadata={"description": "when it ends unless it is used"})
    ends_at = fields.DateTime(metadata={"description": "when it ends in any case"})


class SessionUser(Schema):
    """The user of a session."""

    name = fields.String()
    display_name = fields.String()
    superuser = fields.Boolean()


class OwnSession(SessionRecord):
    """One of the caller's sessions."""

    current = fields.Boolean(metadata={"description": "the one that sends this request"})


class EndedSessions(Schema):
    """How many sessions have been ended."""

    ended = fields.Integer()


class Attention(Schema):
    """Counts for badges: what the caller should look at."""

    tokens_expiring = fields.Integer(metadata={"description": "own tokens that expire within seven days"})
    reviews_waiting = fields.Integer(
        metadata={"description": "administrators: global templates that await a review; else 0"}
    )
    gpus_lost = fields.Integer(
        metadata={"description": "running workspaces that lost a GPU: own ones, for administrators all"}
    )
    operations_failed = fields.Integer(metadata={"description": "own ones that failed in the last 24 hours"})


class SessionState(Schema):
    """A session and its user."""

    session = fields.Nested(SessionRecord)
    user = fields.Nested(SessionUser)


class SessionAnswer(SessionState):
    """The current session."""

    attention = fields.Nested(Attention)
    events_after = fields.Integer(
        metadata={"description": "Last-Event-ID with which a page that reads its lists now misses no event"}
    )


class LoginAnswer(SessionState):
    """A new session; its cookie comes as Set-Cookie."""

    session_secret = fields.String(
        metadata={"description": "shown this once; send it as X-Svc-Session with every request"}
    )


class Nothing(Schema):
    """An empty object."""


SESSIONS = page_of(OwnSession, "SessionPage")
