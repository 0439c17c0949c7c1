"""What a view returned, as an HTTP answer."""

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

PART = 64 * 1024  # of a file; each has SENDING_S to go
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9._ +=,@~-]")
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")  # newlines, and marks that turn what follows round


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


def attachment(name: bytes) -> dict[str, str]:
    """The header that has a file saved under its name, whatever that is (RFC 6266, RFC 8187)."""
    text = name.decode("utf-8", "replace")
    text = "".join("_" if unicodedata.category(one) in _UNSEEN or one in '/\\"' else one for one in text)
    plain, exact = _NOT_PLAIN.sub("_", text), quote(text, safe="")
    return {"Content-Disposition": f"attachment; filename=\"{plain}\"; filename*=UTF-8''{exact}"}


def _parts(content: BinaryIO, until: float) -> Iterator[bytes]:
    while part := content.read(PART):
        if time.monotonic() > until:
            raise ConnectionResetError(errno.ECONNRESET, "read too slowly")
        yield part
