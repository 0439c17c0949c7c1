"""JSON by the C parts of the standard library alone, for programs that somebody waits for.

`import json` takes longer than all else that these do: it compiles regular expressions.
"""

from __future__ import annotations

from _json import encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # no cost when it runs


class _Plain:
    """What the C scanner wants to know: plain objects, plain numbers."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def loads(text: str) -> Any:
    """The value of a JSON text without space before it; raises ValueError."""
    try:
        value, end = make_scanner(_Plain())(text, 0)  # type: ignore[arg-type]  # any object with these will do
    except StopIteration:
        raise ValueError("not JSON") from None
    if text[end:].strip():
        raise ValueError("more than one JSON value")
    return value


def dumps(value: Any) -> str:
    """The JSON text of plain values; raises TypeError and ValueError."""
    encode = make_encoder({}, _refuse, encode_basestring_ascii, None, ":", ",", False, False, False)
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")
