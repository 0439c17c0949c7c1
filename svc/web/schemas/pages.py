"""Lists: the query for a page and the envelope around its items."""

from __future__ import annotations

from typing import Any

from marshmallow import Schema, fields, post_load

from svc.domain.pages import Page
from svc.limits import LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, USER_ID
from svc.web.schemas.fields import QueryNumber, Text, matching
from svc_helper.wire.limits import USER_NAME

OFFSET_MAX = 10**9


class ListQuery(Schema):
    """`limit`, `offset`, `q` and `sort` of every list; loads into {page, ...filters}."""

    limit = QueryNumber(1, LIST_LIMIT_MAX, load_default=LIST_LIMIT_DEFAULT)
    offset = QueryNumber(0, OFFSET_MAX, load_default=0)
    q = Text(128, load_default="", metadata={"description": "text that the name contains"})
    sort = Text(32, load_default="", metadata={"description": "a column; a leading - reverses the order"})

    @post_load
    def page(self, data: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Combine the parameters of the page; filters stay beside it."""
        status = tuple(filter(None, data.pop("status", "").split(",")))
        parts = (data.pop("limit"), data.pop("offset"), data.pop("q"), data.pop("sort"))
        return data | {"page": Page(*parts, status)}


def owner_field() -> fields.String:
    """`?owner=`, for administrators."""
    return fields.String(
        validate=matching(f"({USER_NAME}|{USER_ID})", "Not a user name or id."),
        metadata={"description": "administrators: another user's, by name or id"},
    )


class OwnerQuery(Schema):
    """`owner` alone, where administrators may act for another user."""

    owner = owner_field()


def choices_field(choices: tuple[str, ...]) -> fields.String:
    """A filter: one or more of the choices, separated by commas."""
    any_of = "|".join(choices)
    return fields.String(
        load_default="",
        validate=matching(rf"(?:{any_of})(?:,(?:{any_of}))*", f"Use {', '.join(choices)}."),
        metadata={"description": f"one or more of {', '.join(choices)}"},
    )


status_field = choices_field  # `?status=`, which becomes a part of the page


class Envelope(Schema):
    """What every list has beside its items; one that always comes whole has its number of items as limit."""

    total = fields.Integer(required=True)
    limit = fields.Integer(required=True)
    offset = fields.Integer(required=True)
    next_offset = fields.Integer(required=True, allow_none=True)


def page_of(item: type[Schema], name: str, **more: fields.Field[Any]) -> Schema:
    """The schema of a list of items, whole or a page of it."""
    items = fields.List(fields.Nested(item), required=True)
    return Envelope.from_dict({"items": items, **more}, name=name)()
