"""The audit: queries and records."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import Schema, ValidationError, fields

from svc.web.schemas.fields import Text
from svc.web.schemas.pages import ListQuery, page_of
from svc_helper.wire.limits import USER_NAME_MAX

NAME_MAX = 64  # of an action, an outcome, a request id
USER_MAX = USER_NAME_MAX + 32  # of an account, which may be retired
MOMENT_MAX = 40


class Moment(Text):
    """An RFC 3339 time, or a date (its start, UTC); loads into the form of the database."""

    def __init__(self, **options: Any) -> None:
        super().__init__(MOMENT_MAX, **options)

    def _deserialize(self, value: Any, attr: str | None, data: Mapping[str, Any] | None, **_: Any) -> str:
        text = super()._deserialize(value, attr, data)
        try:
            moment = datetime.fromisoformat(text if "T" in text else f"{text}T00:00Z")
            if moment.tzinfo is None:
                raise ValueError("no time zone")
            moment = moment.astimezone(UTC)
        except (ValueError, OverflowError):
            raise ValidationError("Use a time such as 2026-01-31T12:00:00Z.") from None
        return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


class OwnAuditQuery(ListQuery):
    """A page of the rows that the caller sees."""

    action = Text(NAME_MAX, load_default="", metadata={"description": "whole, or its noun alone (`auth`)"})
    outcome = Text(
        NAME_MAX, load_default="", metadata={"description": "ok, begun, interrupted, or an error's code"}
    )
    request_id = Text(NAME_MAX, load_default="", metadata={"description": "all rows of one request"})
    since = Moment(load_default="", metadata={"description": "from this time on"})
    until = Moment(load_default="", metadata={"description": "before this time"})


class AuditQuery(OwnAuditQuery):
    """A page of all rows."""

    user = Text(USER_MAX, load_default="", metadata={"description": "the account that did it"})


class OwnAuditRow(Schema):
    """An action, its user and its outcome."""

    id = fields.Integer()
    at = fields.DateTime()
    user = fields.String(
        metadata={"description": "the account that did it; (unknown) for a login without one"}
    )
    via = fields.String(metadata={"description": "socket, session, token, worker or admin"})
    address = fields.String(metadata={"description": "where a call over HTTPS came from"})
    action = fields.String(metadata={"description": "noun.verb"})
    target = fields.String()
    target_name = fields.String(
        metadata={"description": "the target's name of then; empty where it has none, and in older rows"}
    )
    target_owner = fields.String(
        allow_none=True, metadata={"description": "whose it was, where somebody else acted on it"}
    )
    outcome = fields.String(
        metadata={
            "description": "begun (the row of its end has the same request_id), ok, an error's code,"
            " or interrupted: its process ended before the outcome was recorded"
        }
    )
    request_id = fields.String()
    detail = fields.Dict()


class AuditRow(OwnAuditRow):
    """A row for administrators, with its link in the hash chain."""

    hash = fields.String(metadata={"description": "SHA-256 over the hash of the row before and this row"})


OWN_AUDIT = page_of(OwnAuditRow, "OwnAuditPage")
AUDIT = page_of(AuditRow, "AuditPage")
