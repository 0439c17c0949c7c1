"""A request body that is a file: received into an unnamed file in parts, or refused.

The view judges its content. Whatever the body does (a length or chunks, slow,
truncated, longer than announced), memory use stays at one part, and nothing of a
refused body is kept.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from flask import g, request

from svc.domain.files import spool
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.errors import InvalidRequest, TooLarge
from svc.limits import TRANSFER_S
from svc.web import access

TAR = "application/x-tar"
BYTES = "application/octet-stream"
PART = 64 * 1024  # each must arrive within READING_S


@contextmanager
def received(media_type: str, most: int) -> Iterator[tuple[Caller, BinaryIO]]:
    """The request's body as a file at its beginning, and the caller, checked again after a slow one.

    Raises InvalidRequest, TooLarge, TooManyRequests (it is one of the caller's long calls), StorageFull.
    """
    if request.mimetype != media_type:
        raise InvalidRequest(f"the body is {request.mimetype or 'untyped'}, not {media_type}")
    size = most if request.content_length is None else request.content_length
    if size > most:
        raise _too_large(most)
    with long_calls.counted(g.caller), spool.unnamed_file(size) as file:
        with access.rechecked():
            _take(file, most, until=time.monotonic() + TRANSFER_S)
        file.seek(0)
        yield g.caller, file


def _take(file: BinaryIO, most: int, until: float) -> None:
    """Read the body into the file."""
    length = request.content_length
    count = 0
    while part := _part(PART if length is None else min(PART, length - count)):
        count += len(part)
        if count > most:
            raise _too_large(most)
        if time.monotonic() > until:
            raise InvalidRequest(f"the body took longer than {TRANSFER_S} seconds to arrive")
        file.write(part)
    if length not in (None, count):
        raise InvalidRequest(f"the body ended after {count} of {length} bytes")
    spool.ended(file)


def _part(size: int) -> bytes:
    """The next part of the body; empty at its end.

    From the server's own stream, which knows where a body in chunks ends: Werkzeug's
    takes a truncated one for complete.
    """
    try:
        part: bytes = request.environ["wsgi.input"].read(size)
    except OSError:  # gunicorn raises it for truncated chunks too
        raise InvalidRequest("the body was cut short") from None
    return part


def _too_large(most: int) -> TooLarge:
    return TooLarge(f"the body is over {most} bytes", details={"limit": most})
