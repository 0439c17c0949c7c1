"""Which part of a file a request asks for, and whether its sender has it already (RFC 9110)."""

from __future__ import annotations

from email.utils import formatdate

from flask import request

from svc.domain.files.transfers import behind_the_end


def is_known(etag: str) -> bool:
    """Whether If-None-Match names the file as it is."""
    return bool(request.if_none_match) and request.if_none_match.contains_weak(etag)


def asked(size: int, etag: str) -> tuple[int, int] | None:
    """Offset and count of the one range that is asked for; None for the whole file.

    That is also the answer to several ranges, to what is no range, and to an
    If-Range that does not name the file as it is (a date is never exact enough).
    Raises RangeUnsatisfiable.
    """
    wanted = request.range
    if wanted is None or wanted.units != "bytes" or len(wanted.ranges) != 1:
        return None
    if "If-Range" in request.headers and request.headers["If-Range"] != f'"{etag}"':
        return None
    found = wanted.range_for_length(size)
    if found is None and size and wanted.ranges[0][0] < 0:
        return 0, size  # "if shorter than the suffix length, the entire representation is used"
    if found is None:
        raise behind_the_end(size)
    begin, end = found
    return begin, end - begin


def content_range(offset: int, count: int, size: int) -> str:
    """The value of Content-Range."""
    return f"bytes {offset}-{offset + count - 1}/{size}"


def http_date(mtime_ns: int) -> str:
    """A file's time for Last-Modified; empty for one that HTTP cannot say."""
    try:
        return formatdate(mtime_ns // 10**9, usegmt=True)
    except (OverflowError, OSError, ValueError):
        return ""
