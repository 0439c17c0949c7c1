"""Logs: queries and text."""

from __future__ import annotations

from marshmallow import Schema, fields

from svc.domain.workspaces.live.followed import PLACE as LOG_PLACE
from svc.web.schemas.fields import QueryFlag, QueryNumber, Slug, matching
from svc_helper.wire.limits import LOG_TAIL_MAX, SIZE_MAX


class LogQuery(Schema):
    """How many of the newest lines; all without a number."""

    tail = QueryNumber(0, LOG_TAIL_MAX)
    timestamps = QueryFlag(
        load_default=False, metadata={"description": "true: each line has the time of its writing before it"}
    )


class LauncherLogQuery(LogQuery):
    """How many of the newest lines, and from which launcher."""

    launcher = Slug(metadata={"description": "the output of this launcher instead of the container's"})


class FollowQuery(LauncherLogQuery):
    """Which lines come first, and from which launcher."""

    after = fields.String(
        validate=matching(LOG_PLACE, "Not the id of an event of a log."),
        metadata={"description": "the id of an event: what came after it; `tail` does not count then"},
    )


class RawLogQuery(LauncherLogQuery):
    """Which output, and for an interrupted answer where it is continued."""

    start = fields.String(
        validate=matching(r"[0-9]{1,15}\.[0-9]{1,15}", "Not a start."),
        metadata={"description": "X-Svc-Log-Start of an earlier answer, to begin where it began"},
    )
    skip = QueryNumber(
        0, SIZE_MAX, load_default=0, metadata={"description": "bytes to leave out at the beginning"}
    )


class LogMarker(Schema):
    """What the service noted of a launcher, such as a start; not part of its output."""

    offset = fields.Integer(metadata={"description": "bytes of the output before it"})
    text = fields.String()


class LogText(Schema):
    """The newest output, at most 1 MiB; bytes that are not UTF-8 as U+FFFD."""

    text = fields.String()
    truncated = fields.Boolean(
        metadata={"description": "whether more was asked for and is kept: see `logs/raw`"}
    )
    older_gone = fields.Boolean(
        metadata={"description": "whether older output was asked for and is no longer kept"}
    )
    markers = fields.List(fields.Nested(LogMarker))
