"""What a view returned, as an HTTP answer."""

from __future__ import annotations

import json
from typing import Any

from flask import Response


def shown(value: Any, status: int, location: str = "") -> Response:
    """A record (dict), JSON text that SQL made (str), or nothing (None: 204), with its Location.

    A Response goes through as it is: health says 503 in its own way.
    """
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status=204)
    if isinstance(value, str):
        return Response(value, status, content_type="application/json")
    response = Response(dumps(value), status, content_type="application/json")
    if location:
        response.headers["Location"] = location.format(**value)
    return response


def dumps(value: Any) -> str:
    """Compact JSON of an answer."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
