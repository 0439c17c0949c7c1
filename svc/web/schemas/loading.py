"""Load a value through a schema without a request, for the API and for `svc admin` (no Flask here)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from marshmallow import RAISE, Schema, ValidationError

from svc.errors import ValidationFailed

FIELDS_MAX = 32  # complaints in one answer, which would else be five times what was sent
NAME_MAX = 200  # of a field's name, which may be the sender's own
_CODES = {
    "Missing data for required field.": "required",
    "Unknown field.": "unknown_key",
    "Field may not be null.": "null",
}


def load(schema: Schema, untrusted: Mapping[str, Any], within: str = "") -> dict[str, Any]:
    """The value as the schema has it; raises ValidationFailed, whose fields' names begin with `within`."""
    try:
        loaded: dict[str, Any] = schema.load(untrusted, unknown=RAISE)
    except ValidationError as error:
        raise refusal(fields_of(error.messages, within)) from None
    return loaded


def refusal(fields: list[dict[str, str]]) -> ValidationFailed:
    """The error for fields that were refused: the first one's words, all their names."""
    names = ", ".join(field["field"] for field in fields[:3])
    first = fields[0]["message"].rstrip(".") if fields else "invalid"
    return ValidationFailed(f"{names}: {first}", fields=fields[:FIELDS_MAX])


def fields_of(messages: Any, path: str = "") -> list[dict[str, str]]:
    """marshmallow's nested messages, flat: one row per complaint with its dotted path."""
    if isinstance(messages, dict):
        found: list[dict[str, str]] = []
        for key, inner in messages.items():
            name = path if key == "_schema" else f"{path}.{key}" if path else str(key)
            name = name if len(name) <= NAME_MAX else f"{name[:NAME_MAX]}..."
            found += fields_of(inner, name)
        return found
    words = messages if isinstance(messages, list) else [messages]
    return [{"field": path, "code": _CODES.get(str(word), "invalid"), "message": str(word)} for word in words]
