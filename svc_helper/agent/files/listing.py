"""The file roots, and what is in a directory of one: `fs.roots` and `fs.list`.

A row is [name, type, bytes, mtime in ns, mode bits, target of a link], with name
and target percent-encoded: a name is bytes, and JSON has none.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from typing import Any

from svc_helper.agent.calls import Call
from svc_helper.agent.files import beneath
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes, path_text

PAGE_BYTES_MAX = 3 * 1024 * 1024  # of rows in JSON; an answer has at most 4 MiB
_ROW_BYTES = 100  # of a row without its name and target, at most
_CHECK_EVERY = 4096  # names read between looks at the caller and the clock
_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}

Row = list[Any]


def roots(podman: Podman, _call: Call, _args: dict[str, Any]) -> dict[str, Any]:
    """`fs.roots`: {"roots": [{id, path, exists, read_only, free_bytes, size_bytes}]}; makes none of them.

    The bytes are null where the root is not there, or cannot be looked at.
    """
    home = podman.home
    return {
        "roots": [
            {"id": name, "path": path_text(os.fsencode(path)), "read_only": name in home.read_only}
            | _disk(path)
            for name, path in home.roots.items()
        ]
    }


def _disk(path: str) -> dict[str, Any]:
    try:
        found = os.statvfs(path)
        exists = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return {"exists": os.path.isdir(path), "free_bytes": None, "size_bytes": None}
    free, size = found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
    return {"exists": exists, "free_bytes": free, "size_bytes": size}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.list`: {"entry": row of the path itself, "rows": [...], "total": names in it}.

    The path's own row says what a link leads to. Rows are those of a directory, by
    the bytes of their names, from `offset`, at most `limit` and PAGE_BYTES_MAX: there
    may be fewer than `limit` before the last. Whatever goes meanwhile is left out.
    """
    path = path_bytes(args["path"])
    root = beneath.root(podman.home, args["root"])
    try:
        with beneath.refusing(path):
            try:
                directory = beneath.open_(root, path, os.O_RDONLY | os.O_DIRECTORY)
            except NotADirectoryError:
                return {"entry": led_to(root, path), "rows": [], "total": 0}
            try:
                own = _row(path.rpartition(b"/")[2], os.fstat(directory), None)
                rows, total = _page(call, directory, args["offset"], args["limit"])
            finally:
                os.close(directory)
    finally:
        os.close(root)
    return {"entry": own, "rows": rows, "total": total}


def led_to(root: int, path: bytes) -> Row:
    """The row of what a path leads to, links followed; OSError as beneath.open_() raises it."""
    place = beneath.open_(root, path, os.O_PATH)
    try:
        return _row(path.rpartition(b"/")[2], os.fstat(place), None)
    finally:
        os.close(place)


def _page(call: Call, directory: int, offset: int, limit: int) -> tuple[list[Row], int]:
    """One page of a directory and the number of all names; looks only at what is on the page."""
    count = [0]
    names = _first(_names(call, directory, count), offset + limit)
    rows: list[Row] = []
    size = 0
    for number, name in enumerate(names[offset:]):
        if number % _CHECK_EVERY == 0:
            call.check()
        row = entry(directory, name)
        if row is None:
            continue
        size += len(row[0]) + len(row[5] or "") + _ROW_BYTES
        if size > PAGE_BYTES_MAX:
            break
        rows.append(row)
    return rows, count[0]


def _first(names: Iterator[bytes], wanted: int) -> list[bytes]:
    """The first names in the order of their bytes, sorted; holds about twice as many at most."""
    held: list[bytes] = []
    for name in names:
        held.append(name)
        if len(held) >= 2 * wanted + _CHECK_EVERY:
            held.sort()
            del held[wanted:]
    held.sort()
    return held[:wanted]


def _names(call: Call, directory: int, count: list[int]) -> Iterator[bytes]:
    """The names in a directory, svc's own unfinished uploads apart; counts them."""
    with os.scandir(directory) as found:
        for number, each in enumerate(found, 1):
            if number % _CHECK_EVERY == 0:
                call.check()
            name = os.fsencode(each.name)
            if beneath.is_draft(name):
                continue
            count[0] += 1
            yield name


def entry(directory: int, name: bytes) -> Row | None:
    """The row of one name in a directory, a link not followed; None when it is not there.

    What may not be looked at (another's mount point, for example) is of type "other", and 0 in all else.
    """
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except OSError:
        return [path_text(name), "other", 0, 0, 0, None]
    target = None
    if stat.S_ISLNK(found.st_mode):
        try:
            target = os.readlink(name, dir_fd=directory)
        except OSError:  # it has become something else
            target = None
    return _row(name, found, target)


def _row(name: bytes, found: os.stat_result, target: bytes | None) -> Row:
    return [
        path_text(name),
        _TYPES.get(stat.S_IFMT(found.st_mode), "other"),
        found.st_size,
        found.st_mtime_ns,
        stat.S_IMODE(found.st_mode),
        None if target is None else path_text(target),
    ]
