"""HTTP responses: records, files to download, and their headers."""

from __future__ import annotations

import errno
import json
import os
import re
import time
import unicodedata
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO
from urllib.parse import quote

from flask import Response

from svc.limits import TRANSFER_S

PART = 64 * 1024  # bytes of a file at a time; each part has SENDING_S
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._ +=,@~-]")
_INVISIBLE = ("Cc", "Cf", "Cs", "Zl", "Zp")  # newlines, and marks that reverse the text after them


def response(value: Any, status: int, location: str = "", **path: str) -> Response:
    """The response for a record (dict), JSON text from SQL (str) or nothing (None: 204).

    `location` is filled from the record and from the names in the request's path. A
    Response is returned unchanged: health sets its own status.
    """
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status=204)
    if isinstance(value, str):
        return Response(value, status, content_type="application/json")
    text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    headers = {"Location": location.format(**(path | value))} if location else {}
    return Response(text, status, headers, content_type="application/json")


def file(content: BinaryIO, media_type: str, name: str, held: ExitStack, **headers: str) -> Response:
    """A whole file, to be saved under a name (a slug with an ending); `held` is closed at its end.

    Not by sendfile, which has no timeout for a slow reader.
    """
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    disposition = {"Content-Disposition": f'attachment; filename="{name}"'}
    parts = _parts(content, time.monotonic() + TRANSFER_S)
    download = Response(parts, headers=disposition | headers, content_type=media_type)
    download.content_length = size
    download.call_on_close(held.pop_all().close)
    return download


def attachment(name: bytes) -> dict[str, str]:
    """The header to save a file under any name (RFC 6266, RFC 8187)."""
    text = name.decode("utf-8", "replace")
    text = "".join("_" if unicodedata.category(c) in _INVISIBLE or c in '/\\"' else c for c in text)
    plain, exact = _NOT_PLAIN.sub("_", text), quote(text, safe="")
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"}


def _parts(content: BinaryIO, deadline: float) -> Iterator[bytes]:
    while part := content.read(PART):
        if time.monotonic() > deadline:
            raise ConnectionResetError(errno.ECONNRESET, "read too slowly")
        yield part
