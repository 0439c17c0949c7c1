"""schema/api.d.ts: the API's records and replies as types of TypeScript, from the OpenAPI document.

Only the check of the pages' JavaScript reads them (tests/run.d/javascript); no page loads them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

HEADER = "// Made by docs/api_types.py from schema/openapi.json; edit the schemas and run `make docs`.\n"
PRIMITIVES = {
    "string": "string",
    "integer": "number",
    "number": "number",
    "boolean": "boolean",
    "null": "null",
}
_REFERENCE = "#/components/schemas/"


def page(document: dict[str, Any]) -> str:
    """A namespace `Api`: an interface for each schema, and `Replies`: method and path to what is answered."""
    schemas = document["components"]["schemas"]
    sent = set(_sent(document, schemas))
    parts = [_interface(name, schema, name in sent) for name, schema in sorted(schemas.items())]
    parts.append(_replies(document))
    body = "\n".join(parts)
    return f"{HEADER}\ndeclare namespace Api {{\n{body}}}\n"


def _interface(name: str, schema: dict[str, Any], is_sent: bool) -> str:
    """A schema; what is sent may leave out what it need not have, what is answered has all."""
    required = set(schema.get("required", ()))
    lines = [f"  interface {name} {{\n"]
    for field, value in sorted(schema.get("properties", {}).items()):
        mark = "?" if is_sent and field not in required else ""
        lines.append(f"    {field}{mark}: {_type(value)};{_said(value)}\n")
    return "".join([*lines, "  }\n"])


def _said(schema: dict[str, Any]) -> str:
    return f" // {schema['description']}" if "description" in schema else ""


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"].removeprefix(_REFERENCE))
    if "anyOf" in schema:
        return " | ".join(_type(part) for part in schema["anyOf"])
    if "enum" in schema:
        return " | ".join(json.dumps(value).replace('"', "'") for value in schema["enum"])
    kinds = schema.get("type", "unknown")
    return " | ".join(_kind(kind, schema) for kind in (kinds if isinstance(kinds, list) else [kinds]))


def _kind(kind: str, schema: dict[str, Any]) -> str:
    if kind == "array":
        item = _type(schema.get("items", {}))
        return f"({item})[]" if " | " in item else f"{item}[]"
    if kind == "object":
        values = schema.get("additionalProperties")
        return f"Record<string, {_type(values) if values else 'any'}>"
    return PRIMITIVES.get(kind, "any")


def _replies(document: dict[str, Any]) -> str:
    """`*` stands for each part of a path that is a name or an id."""
    lines = [
        f"    '{method.upper()} {re.sub(r'{[^}]*}', '*', path)}': {_reply(operation)};\n"
        for path, operations in sorted(document["paths"].items())
        for method, operation in sorted(operations.items())
    ]
    return "".join(["  interface Replies {\n", *lines, "  }\n"])


def _reply(operation: dict[str, Any]) -> str:
    answers = [answer for code, answer in operation["responses"].items() if code != "default"]
    contents = [answer["content"].get("application/json") for answer in answers if "content" in answer]
    return " | ".join(_type(content["schema"]) for content in contents if content) or "null"


def _sent(document: dict[str, Any], schemas: dict[str, Any]) -> Iterator[str]:
    """The names of schemas that are, or are in, the body of a request."""
    found = set(
        _references([o.get("requestBody", {}) for p in document["paths"].values() for o in p.values()])
    )
    while new := set(_references([schemas[name] for name in found])) - found:
        found |= new
    return iter(found)


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "$ref" in value:
            yield value["$ref"].removeprefix(_REFERENCE)
        for part in value.values():
            yield from _references(part)
    elif isinstance(value, list):
        for part in value:
            yield from _references(part)
