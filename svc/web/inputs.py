"""Request input: one strict JSON object and one flat query, both loaded through a schema.

Refused: a duplicate key, NaN and numbers beyond a double, nesting over
JSON_DEPTH_MAX, lone surrogates, another content type, more bytes or values than the schema takes.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl

from flask import g, request
from marshmallow import Schema

from svc.domain import versions
from svc.errors import InvalidJson, InvalidRequest, TooLarge, ValidationFailed
from svc.limits import BODY_MAX, BODY_VALUES_LEAST, JSON_DEPTH_MAX
from svc.web.schemas.loading import load, members_most, refusal
from svc_helper.wire import strict_json

QUERIES_KEPT, QUERY_KEPT = 512, 256  # cached queries, and the most bytes of one

IF_MATCH_MAX = 2048  # characters of the header; an ETag has up to 130
_TAG = re.compile(r'(W/)?"([\x21\x23-\x2b\x2d-\x7e]*)"')  # without commas, which no version has

ANYTHING = Schema()  # a query that is ignored


def body(schema: Schema) -> dict[str, Any]:
    """The request's JSON object (an empty body is an empty object); raises InvalidJson, ValidationFailed.

    A schema may have limits of its own: `body_max`, the bytes, and with it `brackets_max`.
    """
    data = request.get_data()
    if len(data) > body_max(schema):
        raise too_large()
    if data and request.mimetype != "application/json":
        raise InvalidJson(f"the body is {request.mimetype or 'untyped'}, not application/json")
    brackets_max = getattr(schema, "brackets_max", None)
    return load(schema, parse_object(data, members_max(schema), brackets_max) if data else {})


def body_max(schema: Schema | None) -> int:
    """The most bytes of a body of this schema."""
    most: int = getattr(schema, "body_max", BODY_MAX)
    return most


def query(schema: Schema) -> dict[str, Any]:
    """The request's query, each key at most once; raises ValidationFailed."""
    if schema is ANYTHING:
        return {}
    text = request.query_string
    return dict(_cached(schema, text) if len(text) <= QUERY_KEPT else _load(schema))


@lru_cache(maxsize=QUERIES_KEPT)
def _cached(schema: Schema, _text: bytes) -> dict[str, Any]:
    """The request's query; the same few queries come again and again."""
    return _load(schema)


def _load(schema: Schema) -> dict[str, Any]:
    found: dict[str, str] = {}
    for key, value in _pairs(getattr(schema, "undecodable", "")):
        if key in found:
            raise refusal([{"field": key, "code": "twice", "message": "given more than once"}])
        found[key] = value
    return load(schema, found)


def _pairs(undecodable: str) -> list[tuple[str, str]]:
    """The decoded query; `undecodable` is a schema's own error handler for bytes that are not UTF-8."""
    if not undecodable:
        return list(request.args.items(multi=True))
    text = request.query_string.decode("utf-8", undecodable)
    pairs = parse_qsl(text, keep_blank_values=True, errors=undecodable)
    return [(key.encode("utf-8", undecodable).decode("utf-8", "replace"), value) for key, value in pairs]


def if_match() -> tuple[str, ...] | None:
    """The versions of the If-Match header, `*` for any, None without one; raises InvalidRequest.

    A weak one (W/) matches nothing, as RFC 9110 has it.
    """
    text = request.headers.get("If-Match")
    if text is None:
        return None
    if text.strip() == "*":
        return (versions.ANY,)
    found = [_TAG.fullmatch(part.strip()) for part in text[:IF_MATCH_MAX].split(",")]
    if len(text) > IF_MATCH_MAX or not all(found):
        raise InvalidRequest('If-Match is neither * nor a list of quoted versions, as "..." of an ETag')
    return tuple(tag[2] for tag in found if tag and not tag[1])


def too_large() -> TooLarge:
    """The error for a body over the limit of its route."""
    limit = body_max(g.route.body) if g.get("route") else BODY_MAX
    return TooLarge(f"the body is over {limit} bytes", details={"limit": limit})


def refuse_query() -> None:
    """Raise ValidationFailed for any query on an endpoint that takes none."""
    if request.query_string:
        keys = sorted(request.args) or ["?"]
        raise refusal([{"field": key, "code": "unknown_key", "message": "Unknown field."} for key in keys])


def parse_object(data: bytes, members_max: int, brackets_max: int | None = None) -> dict[str, Any]:
    """The strict JSON object in a body or message, with at most so many values.

    Raises InvalidJson, whose message has none of the content, and ValidationFailed for more values.
    """
    try:
        return strict_json.load_object(
            data, depth_max=JSON_DEPTH_MAX, brackets_max=brackets_max, members_max=members_max
        )
    except strict_json.TooMany as error:
        raise ValidationFailed(f"the body {error}") from None
    except strict_json.Malformed as error:
        raise InvalidJson(f"the body {error}") from None


def members_max(schema: Schema) -> int:
    """The most values of a body: twice those of a valid one, since an empty list counts, or a few."""
    return max(2 * members_most(schema), BODY_VALUES_LEAST)
