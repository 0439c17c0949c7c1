"""What the tests of bundles share: a small valid one, and archives put together from whatever parts."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from typing import Any, BinaryIO

import pytest

from svc.domain.templates import bundle_headers, bundles
from svc.domain.templates.bundles import ContextFile
from svc.errors import SvcError, ValidationFailed

BLOCK = bundle_headers.BLOCK
END = bytes(2 * BLOCK)
TEMPLATE = {"name": "trainer", "description": "für alle", "env": [{"name": "A", "value": "1"}]}
RECIPE = b"FROM registry.example/base:1\nCOPY run.sh /\n"
FILES = {"run.sh": (b"#!/bin/sh\n", True), "data/notes.txt": (b"n" * 700, False), "data/empty": (b"", False)}


def opener(content: bytes) -> Callable[[], BinaryIO]:
    """What opens these bytes, as often as wanted."""
    return lambda: io.BytesIO(content)


def context(files: dict[str, tuple[bytes, bool]]) -> list[ContextFile]:
    """A build context as write() takes it."""
    return [ContextFile(path, run, opener(data), len(data)) for path, (data, run) in files.items()]


def written(
    template: dict[str, Any] = TEMPLATE,
    dockerfile: bytes | None = RECIPE,
    files: dict[str, tuple[bytes, bool]] = FILES,
) -> bytes:
    """A bundle's bytes."""
    file = io.BytesIO()
    bundles.write(file, template, dockerfile, context(files))
    return file.getvalue()


def header(
    name: bytes | str,
    size: int = 0,
    *,
    kind: bytes = b"0",
    mode: bytes = b"0000644\0",
    raw_size: bytes = b"",
    **fields: bytes,
) -> bytes:
    """A header of any fields, with the right checksum."""
    raw = name.encode() if isinstance(name, str) else name
    numbers = {"uid": b"0000000\0", "gid": b"0000000\0", "mtime": b"00000000000\0", "link": b"", "major": b""}
    field = {**numbers, "magic": b"ustar\x0000", "minor": b"", "prefix": b"", "rest": b"", **fields}
    size_field = raw_size or b"%011o\0" % size
    block = bundle_headers._FIELDS.pack(
        raw, mode, field["uid"], field["gid"], size_field, field["mtime"], b" " * 8, kind, field["link"],
        field["magic"], b"who", b"who", field["major"], field["minor"], field["prefix"], field["rest"],
    )  # fmt: skip
    return checksummed(block)


def checksummed(block: bytes) -> bytes:
    """The block with the checksum that it should have."""
    total = sum(block) - sum(block[148:156]) + 8 * 32
    return block[:148] + b"%06o\0 " % total + block[156:]


def member(name: bytes | str, content: bytes = b"", **fields: Any) -> bytes:
    """A header with its content, filled up."""
    return header(name, len(content), **fields) + content + bytes(-len(content) % BLOCK)


def listing(files: dict[str, bytes]) -> dict[str, Any]:
    """A manifest's list of members, none executable."""
    return {
        path: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data), "executable": False}
        for path, data in files.items()
    }


def manifest(files: dict[str, bytes], **changes: Any) -> bytes:
    """The manifest member for these files, with other keys than usual."""
    document = {"format": 1, "template": {}, "members": listing(files), **changes}
    return member("manifest.json", json.dumps(document).encode())


def refusal(data: bytes | BinaryIO, kind: type[SvcError] = ValidationFailed) -> SvcError:
    """How a file is refused."""
    file = io.BytesIO(data) if isinstance(data, bytes) else data
    with pytest.raises(kind) as caught:
        bundles.read(file)
    return caught.value


def code(data: bytes | BinaryIO) -> str:
    """The code of the one field that a refused bundle names."""
    [field] = refusal(data).fields
    assert field["field"].isprintable() and field["message"].isprintable()
    return field["code"]
