"""Load a value through a schema, for the API, bundles and `svc admin`; without Flask."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields

from svc.errors import ValidationFailed, spoken

NAMED_MAX = 3  # fields in the message of an error
FIELDS_MAX = 32  # errors in one answer, which otherwise has five times the size of the request
NAME_MAX = 200  # of a field, which the sender may have invented
UNKNOWN = "Unknown field."
_CODES = {
    "Missing data for required field.": "required",
    UNKNOWN: "unknown_key",
    "Field may not be null.": "null",
}


def load(schema: Schema, untrusted: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The loaded value; raises ValidationFailed, whose field names begin with `within`."""
    try:
        loaded: dict[str, Any] = schema.load(untrusted, unknown=RAISE)
    except ValidationError as error:
        found = _flat(error.messages, within)[:FIELDS_MAX]
        for field in found:
            if field["code"] == "unknown_key":
                field["message"] = _unknown(schema, field["field"].removeprefix(f"{within}."), field["field"])
        raise refusal(found) from None
    return loaded


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
    return [{"field": path, "code": _CODES.get(text, "invalid"), "message": text} for text in texts]
