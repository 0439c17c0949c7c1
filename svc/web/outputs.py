"""What a view returned, as an HTTP answer."""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, BinaryIO

from flask import Response

from svc.limits import TRANSFER_S

PART = 64 * 1024  # of a file; each has SENDING_S to go


def shown(value: Any, status: int, location: str = "") -> Response:
    """A record (dict), JSON text that SQL made (str), or nothing (None: 204), with its Location.

    A Response goes through as it is: health says 503 in its own way.
    """
    if isinstance(value, Response):
        return value
    if value is None:
        return Response(status=204)
    if isinstance(value, str):
        return Response(value, status, content_type="application/json")
    response = Response(dumps(value), status, content_type="application/json")
    if location:
        response.headers["Location"] = location.format(**value)
    return response


def dumps(value: Any) -> str:
    """Compact JSON of an answer."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def file(content: BinaryIO, media_type: str, name: str, held: ExitStack, **headers: str) -> Response:
    """A whole file, to be saved under a name (a slug with an ending); what it needs is `held` to its end.

    Not by sendfile: that waits for a reader without end.
    """
    size = content.seek(0, os.SEEK_END)
    content.seek(0)
    response = Response(_parts(content, time.monotonic() + TRANSFER_S), content_type=media_type)
    response.content_length = size
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    for header, value in headers.items():
        response.headers[header.replace("_", "-")] = value
    response.call_on_close(held.pop_all().close)
    return response


def _parts(content: BinaryIO, until: float) -> Iterator[bytes]:
    while part := content.read(PART):
        if time.monotonic() > until:
            raise ConnectionResetError(errno.ECONNRESET, "read too slowly")
        yield part
