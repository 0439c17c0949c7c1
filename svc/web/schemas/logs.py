"""Logs: queries and text."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.limits import LOG_TAIL_MAX
from svc.web.schemas.fields import QueryNumber, Slug

LOG_TAIL_DEFAULT = 1000


class LogQuery(Schema):
    """How many of the newest lines."""

    tail = QueryNumber(1, LOG_TAIL_MAX, load_default=LOG_TAIL_DEFAULT)


class FollowQuery(LogQuery):
    """How many of the newest lines come first, and from which launcher."""

    launcher = Slug(metadata={"description": "the output of this launcher instead of the container's"})


class LogText(Schema):
    """The newest lines."""

    text = fields.String()
    truncated = fields.Boolean()
