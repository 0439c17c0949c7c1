"""Load a value through a schema, for the API, bundles and `svc admin`; without Flask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError

from svc.errors import ValidationFailed

FIELDS_MAX = 32  # errors in one answer, which otherwise has five times the size of the request
NAME_MAX = 200  # of a field, which the sender may have invented
_CODES = {
    "Missing data for required field.": "required",
    "Unknown field.": "unknown_key",
    "Field may not be null.": "null",
}


def load(schema: Schema, untrusted: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The loaded value; raises ValidationFailed, whose field names begin with `within`."""
    try:
        loaded: dict[str, Any] = schema.load(untrusted, unknown=RAISE)
    except ValidationError as error:
        raise refusal(_flat(error.messages, within)) from None
    return loaded


def refusal(fields: list[dict[str, str]]) -> ValidationFailed:
    """The error for invalid fields: the message of the first one, the names of three."""
    names = ", ".join(field["field"] for field in fields[:3])
    first = fields[0]["message"].rstrip(".") if fields else "invalid"
    return ValidationFailed(f"{names}: {first}", fields=fields[:FIELDS_MAX])


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
