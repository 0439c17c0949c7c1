"""Strict JSON from untrusted bytes: messages of the wire, request bodies, manifests of bundles.

The work is bounded before the parser runs: nesting and the number of values, lists and objects
are counted in time linear in the size.
"""

from __future__ import annotations

import json
import math
import re

from svc_helper.wire.quick_typing import Any, NoReturn

# Possessive, and an unclosed string matches too: linear in the size of any input.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.DOTALL)
_NO_MARK = bytes(byte for byte in range(256) if byte not in b"[]{},")


class Malformed(Exception):
    """The bytes are refused; the text is a predicate ("is not UTF-8") and repeats nothing of them."""


class TooMany(Malformed):
    """More values than the caller takes."""


def load_object(
    untrusted: bytes,
    *,
    depth_max: int,
    brackets_max: int | None = None,
    members_max: int | None = None,
    lone_surrogates: bool = False,
) -> dict[str, Any]:
    """The JSON object in `untrusted`, of which the caller has checked the size; raises Malformed.

    `depth_max` bounds the nesting, `brackets_max` the brackets outside strings, `members_max` the
    members of all lists and objects (an empty one counts as one). Also refused are duplicate keys,
    NaN, infinities, numbers beyond a double and, unless the caller refuses them itself, lone surrogates.
    """
    _require_shallow(untrusted, depth_max, brackets_max, members_max)
    try:
        value = json.loads(
            untrusted.decode(), object_pairs_hook=_unique, parse_constant=_constant, parse_float=_finite
        )
        if b"\\u" in untrusted and not lone_surrogates:  # a lone surrogate can only be written as an escape
            json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        why = error.msg.removesuffix(" at")  # "Invalid control character at"
        raise Malformed(f"is not JSON: {why} at line {error.lineno} column {error.colno}") from None
    except UnicodeDecodeError:
        raise Malformed("is not UTF-8") from None
    except UnicodeEncodeError:
        raise Malformed("has a lone surrogate, which is not text") from None
    except ValueError:  # Python's limit of digits
        raise Malformed("has a number with too many digits") from None
    if type(value) is not dict:
        raise Malformed("is not a JSON object")
    return value


def _require_shallow(
    untrusted: bytes, depth_max: int, brackets_max: int | None, members_max: int | None
) -> None:
    too_many = TooMany(f"has more than {members_max} values")
    # A key and a value each; before the strings are taken out, which makes an object of what follows each.
    if members_max is not None and untrusted.count(b'"') - untrusted.count(b'\\"') > 4 * members_max:
        raise too_many
    marks = _STRING.sub(b"", untrusted).translate(None, _NO_MARK)
    brackets = marks.replace(b",", b"")
    if brackets_max is not None and len(brackets) > brackets_max:
        raise Malformed("has too many lists and objects")
    depth = 0
    for byte in brackets if members_max is None else brackets[: 2 * members_max]:
        depth += 1 if byte in b"[{" else -1
        if depth > depth_max:
            raise Malformed(f"nests deeper than {depth_max}")
    if members_max is not None and len(marks) - marks.count(b"]") - marks.count(b"}") > members_max:
        raise too_many


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise Malformed("has a duplicate key")
    return value


def _constant(name: str) -> NoReturn:
    raise Malformed(f"has {name}, which is not a JSON number")


def _finite(number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise Malformed("has a number out of range")
    return value
