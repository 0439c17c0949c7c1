"""What came in: one strict JSON object, one flat query, both through a schema.

Refused: a key twice, NaN and numbers beyond a double, depth over
JSON_DEPTH_MAX, lone surrogates, another content type, more than BODY_MAX bytes.
"""

from __future__ import annotations

import json
import math
import re
from functools import lru_cache
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from flask import Request, request
from marshmallow import RAISE, Schema, ValidationError
from webargs.flaskparser import FlaskParser

from svc.errors import InvalidJson, InvalidRequest, TooLarge
from svc.limits import BODY_MAX, JSON_DEPTH_MAX
from svc.web.schemas.loading import fields_of, refusal

QUERIES_KEPT, QUERY_KEPT = 512, 256  # how many loaded queries are kept, of at most how many bytes

ANYTHING = Schema()  # marks a query that is not looked at

# A string, also one that never ends: it must match at every quote, or each is a beginning that is
# looked for to the end of the body again (a megabyte of \" took hours, in which no other thread ran).
_STRING = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_BRACKET = {code: None for code in range(128) if chr(code) not in "[]{}"}


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
    """One JSON object out of bytes; raises InvalidJson, which says what is wrong but not what it read."""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidJson("the body is not UTF-8") from None
    if _deeper(text, JSON_DEPTH_MAX):
        raise InvalidJson(f"the body nests deeper than {JSON_DEPTH_MAX}")
    try:
        value = json.loads(
            text, object_pairs_hook=_no_twice, parse_constant=_no_constant, parse_float=_finite
        )
    except json.JSONDecodeError as error:
        raise InvalidJson(
            f"the body is not JSON: {error.msg} at line {error.lineno} column {error.colno}"
        ) from None
    except (ValueError, RecursionError):  # an integer of thousands of digits
        raise InvalidJson("the body is not JSON that can be read") from None
    if type(value) is not dict:
        raise InvalidJson("the body is not a JSON object")
    if "\\u" in text:
        _require_text(value)
    return value


def _deeper(text: str, most: int) -> bool:
    depth = 0
    for bracket in _STRING.sub("", text).translate(_NO_BRACKET):
        depth += 1 if bracket in "[{" else -1 if bracket in "]}" else 0
        if depth > most:
            return True
    return False


def _no_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise InvalidJson("the body has a key twice")
    return made


def _no_constant(name: str) -> NoReturn:
    raise InvalidJson(f"{name} is no JSON number")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise InvalidJson("the body has a number out of range")
    return value


def _require_text(value: dict[str, Any]) -> None:
    try:
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidJson("the body has half a surrogate pair, which is no text") from None


def require_no_script_name(script_name: str) -> None:
    """The app is mounted at the root; raises InvalidRequest for anything that says otherwise."""
    if script_name:
        raise InvalidRequest("the request names a mount point that this service does not have")
