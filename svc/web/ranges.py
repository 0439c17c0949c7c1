"""Ranges and conditional requests of downloads (RFC 9110)."""

from __future__ import annotations

from email.utils import formatdate

from flask import request

from svc.domain.files.transfers import beyond_the_end


def is_known(etag: str) -> bool:
    """Whether If-None-Match contains the file's current tag."""
    return bool(request.if_none_match) and request.if_none_match.contains_weak(etag)


def requested(size: int, etag: str) -> tuple[int, int] | None:
    """Offset and count of the one requested range; None for the whole file.

    The whole file is also the answer to several ranges, to a malformed range, and to an
    If-Range without the current tag (a date is never exact enough). Raises
    RangeUnsatisfiable.
    """
    header = request.range
    if header is None or header.units != "bytes" or len(header.ranges) != 1:
        return None
    if "If-Range" in request.headers and request.headers["If-Range"] != f'"{etag}"':
        return None
    found = header.range_for_length(size)
    if found is None and size and header.ranges[0][0] < 0:
        return 0, size  # "if shorter than the suffix length, the entire representation is used"
    if found is None:
        raise beyond_the_end(size)
    begin, end = found
    return begin, end - begin


def content_range(offset: int, count: int, size: int) -> str:
    """The value of Content-Range."""
    return f"bytes {offset}-{offset + count - 1}/{size}"


def http_date(mtime_ns: int) -> str:
    """A file's time for Last-Modified; empty for a time that HTTP cannot express."""
    try:
        return formatdate(mtime_ns // 10**9, usegmt=True)
    except (OverflowError, OSError, ValueError):
        return ""
