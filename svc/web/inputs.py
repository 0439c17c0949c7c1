"""What came in: one strict JSON object, one flat query, both through a schema.

Refused: a key twice, NaN and numbers beyond a double, depth over
JSON_DEPTH_MAX, lone surrogates, another content type, more than BODY_MAX bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from flask import Request, request
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser

from svc.errors import InvalidJson, InvalidRequest, TooLarge
from svc.limits import BODY_MAX, JSON_DEPTH_MAX
from svc.web.schemas.loading import fields_of, refusal
from svc_helper.wire import strict_json

QUERIES_KEPT, QUERY_KEPT = 512, 256  # how many loaded queries are kept, of at most how many bytes

ANYTHING = Schema()  # marks a query that is not looked at


class Parser(FlaskParser):
    """webargs with the service's own JSON reader and errors."""

    DEFAULT_UNKNOWN_BY_LOCATION = {"json": RAISE, "query": RAISE}

    def load_json(self, req: Request, schema: Schema) -> dict[str, Any]:
        """The body as one object; an empty body is an empty one."""
        data = req.get_data()
        if len(data) > BODY_MAX:
            raise too_large()
        if not data:
            return {}
        if req.mimetype != "application/json":
            raise InvalidJson(f"the body is {req.mimetype or 'untyped'}, not application/json")
        return parse_object(data)

    def load_querystring(self, req: Request, schema: Schema) -> dict[str, str]:
        """The query's keys, each at most once."""
        found: dict[str, str] = {}
        for key, value in _pairs(req, getattr(schema, "undecodable", "")):
            if key in found:
                raise refusal([{"field": key, "code": "twice", "message": "given more than once"}])
            found[key] = value
        return found

    def handle_error(
        self,
        error: ValidationError,
        req: Request,
        schema: Schema,
        *,
        error_status_code: int | None,
        error_headers: Any,
    ) -> NoReturn:
        """A schema's complaint as the service's own error."""
        [messages] = error.messages_dict.values()  # of the one location
        raise refusal(fields_of(messages)) from None


def _pairs(req: Request, undecodable: str) -> list[tuple[str, str]]:
    """The query, decoded once; `undecodable` is a schema's own error handler for what is no UTF-8."""
    if not undecodable:
        return list(req.args.items(multi=True))
    text = req.query_string.decode("utf-8", undecodable)
    pairs = parse_qsl(text, keep_blank_values=True, errors=undecodable)
    return [(key.encode("utf-8", undecodable).decode("utf-8", "replace"), value) for key, value in pairs]


def too_large() -> TooLarge:
    """The refusal of a body over BODY_MAX."""
    return TooLarge(f"the body is over {BODY_MAX} bytes", details={"limit": BODY_MAX})


_parser = Parser()


def body(schema: Schema) -> dict[str, Any]:
    """The request's JSON object, checked; raises InvalidJson, ValidationFailed."""
    loaded: dict[str, Any] = _parser.parse(schema, request, location="json")
    return loaded


def query(schema: Schema) -> dict[str, Any]:
    """The request's query, checked; raises ValidationFailed."""
    if schema is ANYTHING:
        return {}
    text = request.query_string
    return dict(_loaded(schema, text) if len(text) <= QUERY_KEPT else _load(schema))


@lru_cache(maxsize=QUERIES_KEPT)
def _loaded(schema: Schema, _text: bytes) -> dict[str, Any]:
    """What the request's query says; the same few queries come again and again."""
    return _load(schema)


def _load(schema: Schema) -> dict[str, Any]:
    loaded: dict[str, Any] = _parser.parse(schema, request, location="query")
    return loaded


def refuse_query() -> None:
    """Raise ValidationFailed for any query on an endpoint that takes none."""
    if request.query_string:
        keys = sorted(request.args) or ["?"]
        raise refusal([{"field": key, "code": "unknown_key", "message": "Unknown field."} for key in keys])


def parse_object(data: bytes) -> dict[str, Any]:
    """The strict JSON object in a body; raises InvalidJson, whose message repeats nothing of the content."""
    try:
        return strict_json.load_object(data, depth_max=JSON_DEPTH_MAX)
    except strict_json.Malformed as error:
        raise InvalidJson(f"the body {error}") from None


def require_no_script_name(script_name: str) -> None:
    """The app is mounted at the root; raises InvalidRequest for anything that says otherwise."""
    if script_name:
        raise InvalidRequest("the request names a mount point that this service does not have")
