"""The entries of a large directory: read from one answer of many lines, and printed many at a time."""

from __future__ import annotations

import sys

from svc.client import transport
from svc.client.requests import pages, query
from svc.commandline import output
from svc.errors import BadAnswer, TooManyRequests
from svc_helper.wire import quick_json
from svc_helper.wire.limits import FILES_LISTED_MAX

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from svc.commandline.arguments import Arguments
    from svc.commandline.output import Column

LINE_MAX = 64 * 1024  # bytes; a name and its target have at most 9 KiB, all of it escaped


def rest(args: Arguments, root: str, path: str, offset: int, least: int) -> Iterator[list[Any]]:
    """The entries from an offset to the last, at least so many at a time.

    Page by page while too many long calls of the caller's run.
    """
    try:
        with transport.Download(f"/api/fs/{root}/entries" + query(offset=offset, path=path)) as fetched:
            yield from _lists(fetched.parts(), least)
            if not fetched.complete:
                raise BadAnswer("the service's answer was cut short")
    except TooManyRequests:
        for page in pages(args, f"/api/fs/{root}/list", FILES_LISTED_MAX, offset=offset, path=path):
            yield page["items"]


def _lists(parts: Iterator[bytes], least: int) -> Iterator[list[Any]]:
    """The entries of the lines that the parts hold, at least so many at a time."""
    kept = b""
    found: list[Any] = []
    for part in parts:
        lines, end, kept = (kept + part).rpartition(b"\n")
        if len(kept) > LINE_MAX:
            raise BadAnswer("the service's answer has a line that is too long")
        if end:
            found += _parsed(lines)
        if len(found) >= least:
            yield found
            found = []
    if kept:
        raise BadAnswer("the service's answer was cut short")
    if found:
        yield found


def _parsed(lines: bytes) -> list[Any]:
    try:
        found = quick_json.loads(f"[{lines.decode('utf-8').replace(chr(10), ',')}]")
    except (ValueError, RecursionError):
        raise BadAnswer("the service's answer is not JSON") from None
    if type(found) is not list:
        raise BadAnswer("the service's answer is no list of entries")
    return found


def show(found: list[Any], columns: Iterable[Column]) -> None:
    """Print entries into a pipe as output.table() does; in one piece if there is nothing to escape."""
    text = _text(found)
    plain = text.replace("\t", "").replace("\n", "")
    if plain.isprintable() and text.count("\n") == len(found) and text.count("\t") == 6 * len(found):
        sys.stdout.write(text)
    else:
        output.table(columns, found, "")


def _text(found: list[Any]) -> str:
    try:
        return "".join(
            [
                f"{one['type']}\t{one['mode']}\t{one['size']}\t{one['modified_at'] or ''}\t{one['name']}"
                f"\t{one['target'] or ''}\t{one['owner'] or ''}\n"
                for one in found
            ]
        )
    except (KeyError, TypeError):
        return "\0"  # not what the service says: value by value
