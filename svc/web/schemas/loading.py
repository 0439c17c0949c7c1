"""Load a value through a schema, for the API, bundles and `svc admin`; without Flask.

marshmallow judges every key and every item before the length of a list. So a walk along the schema comes
first: it refuses long lists and many unknown keys without a look into them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from svc.errors import ValidationFailed, spoken

NAMED_MAX = 3  # fields in the message of an error
FIELDS_MAX = 32  # errors in one answer, which otherwise has five times the size of the request
NAME_MAX = 200  # of a field, which the sender may have invented
KEY_MAX = 64  # of an unknown key for which a known one is looked for
UNKNOWN = "Unknown field."
_CODES = {
    "Missing data for required field.": "required",
    UNKNOWN: "unknown_key",
    "Field may not be null.": "null",
}
# marshmallow's own sentences in the words of the others: what to use, or what it is not
_WORDINGS = [
    (re.compile(pattern), message)
    for pattern, message in (
        (r"Missing data for required field\.", "Required."),
        (r"Field may not be null\.", "Not null."),
        (r"Must be one of: (.*)\.", r"Use one of \1."),
        (r"Must be greater than or equal to (\S+) and less than or equal to (\S+)\.", r"Use \1 to \2."),
        (r"Must be greater than or equal to (\S+)\.", r"Use \1 or more."),
        (r"Must be less than or equal to (\S+)\.", r"Use at most \1."),
        (r"Length must be between (\d+) and (\d+)\.", r"Use a length of \1 to \2."),
        (r"Length must be (\d+)\.", r"Use a length of \1."),
        (r"Longer than maximum length (\d+)\.", r"Use a length of at most \1."),
        (r"Shorter than minimum length (\d+)\.", r"Use a length of at least \1."),
        (r"Not a valid string\.", "Not a string."),
        (r"Not a valid integer\.", "Not a whole number."),
        (r"Not a valid number\.", "Not a number."),
        (r"Not a valid boolean\.", "Not true or false."),
        (r"Not a valid list\.", "Not a list."),
        (r"Invalid (input )?type\.|Not a valid mapping type\.", "Not an object."),
    )
]


def load(schema: Schema, untrusted: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The loaded value; raises ValidationFailed, whose field names begin with `within`."""
    if out_of_bounds := list(islice(_out_of_bounds(schema, untrusted, within), FIELDS_MAX)):
        raise refusal(out_of_bounds)
    try:
        loaded: dict[str, Any] = schema.load(untrusted, unknown=RAISE)
    except ValidationError as error:
        found = _flat(error.messages, within)[:FIELDS_MAX]
        for field in found:
            if field["code"] == "unknown_key":
                field["message"] = _unknown(schema, field["field"].removeprefix(f"{within}."), field["field"])
        raise refusal(found) from None
    return loaded


@cache
def members_most(schema: Schema) -> int:
    """The most members that all lists and objects of a value of this schema have together.

    Raises TypeError for a list without a greatest length, and for an object with any keys.
    """
    return sum(_members_of(field, name) for name, field in schema.fields.items()) or 1


def _members_of(field: fields.Field[Any], name: str) -> int:
    if isinstance(field, fields.List):
        length = _length_of(field)
        most = getattr(field, "items_max", length.max if length else None)
        if most is None:
            raise TypeError(f"{name}: a list of a request has a greatest length")
        return 1 + int(most) * _members_of(field.inner, name)
    if isinstance(field, fields.Dict):
        raise TypeError(f"{name}: an object of a request has keys of a schema")
    return 1 + members_most(field.schema) if isinstance(field, fields.Nested) else 1


def _length_of(field: fields.List[Any]) -> validate.Length | None:
    """The rule for the length of a list."""
    return next((rule for rule in field.validators if isinstance(rule, validate.Length)), None)


def _out_of_bounds(schema: Schema, untrusted: Any, path: str) -> Iterator[dict[str, str]]:
    """The faults of lists that are too long, and of objects with too many unknown keys."""
    if not isinstance(untrusted, Mapping):
        return
    known = {field.data_key or name: field for name, field in schema.load_fields.items()}
    unknown = list(islice((key for key in untrusted if key not in known), FIELDS_MAX + 1))
    if len(unknown) > FIELDS_MAX:
        yield from _flat({key: [UNKNOWN] for key in unknown}, path)
    for key, field in known.items():
        yield from _too_long(field, untrusted.get(key), f"{path}.{key}" if path else key)


def _too_long(field: fields.Field[Any], untrusted: Any, path: str) -> Iterator[dict[str, str]]:
    if isinstance(field, fields.Nested):
        yield from _out_of_bounds(field.schema, untrusted, path)
    if not isinstance(field, fields.List) or not isinstance(untrusted, list):
        return
    try:
        if length := _length_of(field):
            length(untrusted)
    except ValidationError as error:
        yield from _flat(error.messages, path)
        return
    if (schema := _nested(field)) is not None:
        for number, item in enumerate(untrusted):
            yield from _out_of_bounds(schema, item, f"{path}.{number}")


def refusal(invalid: list[dict[str, str]]) -> ValidationFailed:
    """The error for invalid fields: the message of a single one, the names of several."""
    names = ", ".join(spoken(field["field"]) for field in invalid[:NAMED_MAX])
    if len(invalid) > 1:
        more = ", ..." if len(invalid) > NAMED_MAX else ""
        return ValidationFailed(f"{len(invalid)} values are not valid: {names}{more}", fields=invalid)
    message = invalid[0]["message"].rstrip(".") if invalid else "invalid"
    return ValidationFailed(f"{names}: {message}", fields=invalid)


def _unknown(schema: Schema, path: str, full: str) -> str:
    """The message for an unknown key: with the known one that was probably meant, also a nested one."""
    *parents, key = path.split(".")
    if len(key) > KEY_MAX:
        return UNKNOWN
    for parent in parents:
        if not parent.isdigit():
            schema = _nested(schema.fields.get(parent)) or Schema()
    below = {
        f"{name}.{inner}": inner
        for name, field in schema.fields.items()
        for inner in getattr(_nested(field), "fields", ())
    }
    known = {name: name for name in schema.fields} | below
    exact = [name for name, last in known.items() if last == key]
    close = get_close_matches(key, list(known.values()), 1)
    near = exact or [name for name, last in known.items() if last in close]
    before = full.removesuffix(key)
    return f"{UNKNOWN.rstrip('.')}; did you mean {spoken(before + near[0])}?" if near else UNKNOWN


def _nested(field: fields.Field[Any] | None) -> Schema | None:
    """The schema of an object, also of those in a list; None for other fields."""
    if isinstance(field, fields.List):
        field = field.inner
    return field.schema if isinstance(field, fields.Nested) else None


def _flat(messages: Any, path: str) -> list[dict[str, str]]:
    """marshmallow's nested messages as a flat list: one row for each, with its dotted path."""
    if isinstance(messages, dict):
        found: list[dict[str, str]] = []
        for key, inner in messages.items():
            name = path if key == "_schema" else f"{path}.{key}" if path else str(key)
            name = name if len(name) <= NAME_MAX else f"{name[:NAME_MAX]}..."
            found += _flat(inner, name)
        return found
    texts = map(str, messages if isinstance(messages, list) else [messages])
    return [
        {"field": path, "code": _CODES.get(text, "invalid"), "message": _reworded(text)} for text in texts
    ]


def _reworded(text: str) -> str:
    for pattern, message in _WORDINGS:
        if found := pattern.fullmatch(text):
            return found.expand(message)
    return text
