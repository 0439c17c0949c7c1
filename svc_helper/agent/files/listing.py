"""List the file roots, and the entries of a directory: `fs.roots` and `fs.list`.

A row is [name, type, bytes, mtime in ns, mode bits, target of a link, owner]. Name and
target are percent-encoded, since names are bytes, which JSON does not have.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from svc_helper.agent.calls import Call
from svc_helper.agent.files import beneath
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.files.owners import Owners
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes, path_text
from svc_helper.wire.quick_typing import Any

PAGE_BYTES_MAX = 3 * 1024 * 1024  # of rows in JSON; a reply has at most 4 MiB
_ROW_BYTES = 180  # of a row without its name and target, at most
_CHECK_EVERY = 4096  # names between checks of the caller and the clock
_TYPES = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}

Row = list[Any]


def roots(podman: Podman, _call: Call, _args: dict[str, Any]) -> dict[str, Any]:
    """`fs.roots`: {"roots": [{id, path, exists, read_only, free_bytes, size_bytes}]}; creates none of them.

    The numbers of bytes are null for a root that does not exist or cannot be examined.
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
        disk = os.statvfs(path)
        exists = stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return {"exists": os.path.isdir(path), "free_bytes": None, "size_bytes": None}
    free, size = disk.f_bavail * disk.f_frsize, disk.f_blocks * disk.f_frsize
    return {"exists": exists, "free_bytes": free, "size_bytes": size}


def listing(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.list`: {"entry": row of the path itself, "rows": [...], "total": names in it}.

    The path's own row describes the target of a link. Rows are sorted by the bytes of
    the names and start at `offset`; there are at most `limit`, and fewer when they
    exceed PAGE_BYTES_MAX. An entry that is removed meanwhile is left out.
    """
    path = path_bytes(args["path"])
    with (
        beneath.closing(beneath.root(podman.home, args["root"])) as root,
        beneath.refusing(path),
        Namespace(podman.home, call) as namespace,
    ):
        try:
            opened = namespace.open_(root, path, os.O_RDONLY | os.O_DIRECTORY)
        except NotADirectoryError:
            return {"entry": target_row(namespace, root, path), "rows": [], "total": 0}
        with beneath.closing(opened) as directory:
            own = _row(namespace.owners, path.rpartition(b"/")[2], os.fstat(directory), None)
            rows, total = _page(call, namespace, directory, args["offset"], args["limit"])
    return {"entry": own, "rows": rows, "total": total}


def target_row(namespace: Namespace, root: int, path: bytes) -> Row:
    """The row of a path's file, links followed; raises OSError as beneath.open_() does."""
    with beneath.closing(namespace.open_(root, path, os.O_PATH)) as file:
        return _row(namespace.owners, path.rpartition(b"/")[2], os.fstat(file), None)


def _page(call: Call, namespace: Namespace, directory: int, offset: int, limit: int) -> tuple[list[Row], int]:
    """One page of a directory, and the number of all names; examines only the entries of the page."""
    count = [0]
    kept = _first(names(call, directory, count), offset + limit)
    rows: list[Row] = []
    size = 0
    for number, name in enumerate(kept[offset:]):
        if number % _CHECK_EVERY == 0:
            call.check()
        row = entry(namespace, directory, name)
        if row is None:
            continue
        size += len(row[0]) + len(row[5] or "") + _ROW_BYTES
        if size > PAGE_BYTES_MAX:
            break
        rows.append(row)
    return rows, count[0]


def _first(found: Iterator[bytes], count: int) -> list[bytes]:
    """The first `count` names in the order of their bytes; keeps about twice as many in memory at most."""
    kept: list[bytes] = []
    for name in found:
        kept.append(name)
        if len(kept) >= 2 * count + _CHECK_EVERY:
            kept.sort()
            del kept[count:]
    kept.sort()
    return kept[:count]


def names(call: Call, directory: int, count: list[int] | None = None) -> Iterator[bytes]:
    """The names in a directory without incomplete uploads; counts them."""
    count = [0] if count is None else count
    with os.scandir(directory) as entries:
        for number, each in enumerate(entries, 1):
            if number % _CHECK_EVERY == 0:
                call.check()
            name = os.fsencode(each.name)
            if not beneath.is_draft(name):
                count[0] += 1
                yield name


def entry(namespace: Namespace, directory: int, name: bytes) -> Row | None:
    """The row of one name in a directory, links not followed; None if it does not exist.

    An entry that cannot be examined (another user's mount point, for example) has type "other" and zeros.
    """
    try:
        status = namespace.stat(directory, name)
    except FileNotFoundError:
        return None
    except OSError:
        return [path_text(name), "other", 0, 0, 0, None, None]
    target = None
    if stat.S_ISLNK(status.st_mode):
        target = link_target(namespace, directory, name)
    return _row(namespace.owners, name, status, target)


def link_target(namespace: Namespace, directory: int, name: bytes) -> bytes | None:
    """The target of a link; None if it was replaced meanwhile."""
    with suppress(OSError):
        return namespace.readlink(directory, name)
    return None


def type_of(mode: int) -> str:
    """The type of a file of this mode, as rows have it."""
    return _TYPES.get(stat.S_IFMT(mode), "other")


def _row(owners: Owners, name: bytes, status: os.stat_result, target: bytes | None) -> Row:
    return [
        path_text(name),
        type_of(status.st_mode),
        status.st_size,
        status.st_mtime_ns,
        stat.S_IMODE(status.st_mode),
        None if target is None else path_text(target),
        owners.text(status.st_uid),
    ]
