"""JSON by the C half of the standard library's json alone, for programs whose start somebody waits for.

`import json` takes 6 ms, since it compiles regular expressions. For documents of our own
programs: without the limits of strict_json, which imports json.
"""

from __future__ import annotations

from _json import encode_basestring, encode_basestring_ascii, make_encoder, make_scanner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # not imported when it runs

_SPACE = " \t\n\r"


class _Context:
    """The attributes of json.JSONDecoder that the C scanner reads."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float, parse_int = float, int

    @staticmethod
    def parse_constant(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")


def loads(text: str) -> Any:
    """The value of a JSON document; raises ValueError, or RecursionError for one that nests too deep."""
    text = text.strip(_SPACE)
    try:
        value, end = make_scanner(_Context())(text, 0)  # type: ignore[arg-type]  # typeshed wants a decoder
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("more than one JSON value")
    return value


def dumps(value: Any, *, ascii_only: bool = True, is_compact: bool = False) -> str:
    """A value as JSON, spaced as json.dumps does, or as the API does; raises TypeError or ValueError."""
    quote = encode_basestring_ascii if ascii_only else encode_basestring
    separators = (":", ",") if is_compact else (": ", ", ")
    encode = make_encoder({}, _refuse, quote, None, *separators, False, False, False)
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")
