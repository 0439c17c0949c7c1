"""JSON by the C half of the standard library's json alone: the package itself loads re, 6 ms.

`loads` and `dumps` do what those of json do, for the values that JSON has.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_scanner

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

BLANK = " \t\n\r"


class _Rules:
    """What json.JSONDecoder() tells the scanner, but that no NaN is let in."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")


RULES: Any = _Rules


def loads(body: bytes) -> Any:
    """The value of a JSON document in UTF-8; raises ValueError (or RecursionError, when too deep)."""
    text = body.decode("utf-8").strip(BLANK)
    try:
        value, end = make_scanner(RULES)(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON document")
    return value


def dumps(value: Any) -> bytes:
    """A value as JSON in ASCII."""
    return _dumped(value).encode("ascii")


def _dumped(value: Any) -> str:
    if isinstance(value, str):
        return str(encode_basestring_ascii(value))
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_dumped(str(key))}: {_dumped(item)}" for key, item in value.items()) + "}"
    return "[" + ", ".join(map(_dumped, value)) + "]"
