"""Files below the caller's own file roots: listed, created, moved and removed by the caller's agent.

"Every `fs` operation is audited on the server": what is refused before it reaches these
functions too (svc/web/audited.py). The bytes of files are in transfers.py. Records:

    root: {id, path, mounted_at, exists, read_only, free_bytes, size_bytes}
    entry: {name, path, utf8, type (file, directory, symlink, other), size, modified_at, mode, target, owner}
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from svc.actions.table import BY_NAME, FS_ROOTS
from svc.domain import configuration, pages, untrusted
from svc.domain.audit import audit
from svc.domain.files import paths
from svc.domain.places import long_calls, turn
from svc.domain.principal import Caller
from svc.domain.untrusted import INTEGER_BITS, NUMBER_MAX
from svc.errors import (
    AlreadyThere,
    EngineFailed,
    FileForbidden,
    NotFound,
    ReadOnly,
    RemovalIncomplete,
    SvcError,
)
from svc.limits import ARCHIVE_BYTES_MAX, ARCHIVE_MEMBERS_MAX, FILE_READ_MAX
from svc.log import log
from svc_helper.wire.limits import USER_NAME_MAX

WORK = "work"
MOUNTED_AT = "/work"  # "Mounts the file root `work` at `/work`"
TYPES = ("file", "directory", "symlink", "other")
TARGET_MAX = 3 * 4096  # characters of a link's encoded target
OWNER_MAX = USER_NAME_MAX
ENTRY_KEYS = 7
KEPT_MAX = 20  # entries that a removal names as remaining
ROOT_HINT = "svc fs roots"

Row = tuple[str, str, int, int | None, int, str | None, str | None]
UNKNOWN: Row = ("", "other", 0, None, 0, None, None)  # as an agent lists what it may not look at


def require_root(root: str, *, writing: bool = False) -> None:
    """Raise NotFound for an unknown root, with `writing` ReadOnly for a read-only one."""
    roots = configuration.current.file_roots
    if root not in roots:
        raise NotFound("this host has no such file root", hint=ROOT_HINT)
    if writing and roots[root]:
        raise ReadOnly(f"the file root {root} is read-only", hint=ROOT_HINT)


@contextmanager
def audited(
    caller: Caller, verb: str, root: str, path: bytes, *, writing: bool = False, **detail: Any
) -> Iterator[dict[str, Any]]:
    """One operation on one path: two audit rows (yields the outcome's detail), and hints for its errors."""
    target = f"{root}/{paths.format_path(path)}"
    with audit.audited(caller, BY_NAME[f"fs.{verb}"], target, **detail) as result:
        require_root(root, writing=writing)
        try:
            yield result
        except SvcError as error:
            error.hint = error.hint or _hint(error, verb, root, path)
            named = (paths.format_path(path), str(detail.get("to", "")).partition("/")[2])
            in_the_way, colon, _ = error.message.partition(": ")
            if colon and any(f"{each}/".startswith(f"{in_the_way}/") for each in named):
                error.message = f"{root}/{error.message}"  # the agent names what is below the root
            raise


def _hint(error: SvcError, verb: str, root: str, path: bytes) -> str:
    above = path.rpartition(b"/")[0]
    absent = {"mkdir": path, "upload": above}.get(verb)  # what was to be written needs its directory
    if isinstance(error, NotFound) and absent and "%" not in paths.encode(absent):
        return f"svc fs mkdir {command_argument(root, absent)} --parents"
    if isinstance(error, NotFound | FileForbidden) and path:
        return f"svc fs ls {command_argument(root, above)}"
    if isinstance(error, AlreadyThere):
        in_the_way = error.message.partition(": ")[0].encode()
        if path.startswith(in_the_way + b"/"):  # not a directory: below it is nothing
            return f"svc fs ls {command_argument(root, in_the_way.rpartition(b'/')[0])}"
        return f"svc fs ls {command_argument(root, path)}  # --force replaces a file"
    return ""


def command_argument(root: str, path: bytes) -> str:
    """A path as an argument of the command line, or its root if the path would have to be quoted."""
    encoded = paths.encode(path)
    return f"{root}/{encoded}" if encoded and "%" not in encoded else root


# --- operations --------------------------------------------------------------------------


def list_roots(caller: Caller) -> dict[str, Any]:
    """The caller's file roots: {items, limits}."""
    roots = configuration.current.file_roots
    with audit.audited(caller, FS_ROOTS, ""):
        untrusted_reply = untrusted.get_rows(caller.ask("fs.roots", {}), "roots", len(roots) + 1)
    found = {untrusted.get_text(row, "id", 64): row for row in untrusted_reply}
    limits = {
        "upload_max_bytes": configuration.current.upload_max,
        "read_max_bytes": FILE_READ_MAX,
        "archive_max_members": ARCHIVE_MEMBERS_MAX,
        "archive_max_bytes": ARCHIVE_BYTES_MAX,
    }
    return pages.whole([_root(name, found[name]) for name in roots if name in found], limits=limits)


def _root(name: str, untrusted_reply: Mapping[str, Any]) -> dict[str, Any]:
    path = paths.decode(untrusted.get_text(untrusted_reply, "path", TARGET_MAX))
    room = {key: untrusted.find_capped(untrusted_reply, key) for key in ("free_bytes", "size_bytes")}
    return {
        "id": name,
        "path": paths.format_path(path),
        "mounted_at": MOUNTED_AT if name == WORK else None,
        "exists": untrusted.get_flag(untrusted_reply, "exists"),
        "read_only": configuration.current.file_roots[name],
        **room,
    }


def list_(caller: Caller, root: str, path: bytes, limit: int, offset: int) -> dict[str, Any]:
    """A path's own entry and, of a directory, its entries in the order of their names' bytes.

    {path, entry, items, total, next_offset}; there may be fewer than `limit` items where
    they would exceed the size of one reply.
    """
    with audited(caller, "list", root, path) as result:
        arguments = {"root": root, "path": paths.encode(path), "offset": offset, "limit": limit}
        untrusted_reply = caller.ask("fs.list", arguments)
        with turn(caller):
            items = _entries(untrusted_reply.get("rows"), path, limit)
        total = untrusted.get_count(untrusted_reply, "total")
        result["entries"] = len(items)
        end = offset + len(items)
        return {
            "path": paths.encode(path),
            "entry": _own_entry(untrusted_reply, root, path),
            "items": items,
            "total": total,
            "limit": limit,
            "offset": offset,
            "next_offset": end if items and end < total else None,
        }


def mkdir(caller: Caller, root: str, path: bytes, *, parents: bool = False) -> dict[str, Any]:
    """Create a directory, with `parents` missing parents too; returns its entry. Raises AlreadyThere."""
    with audited(caller, "mkdir", root, path, writing=True):
        arguments = {"root": root, "path": paths.encode(path), "parents": parents}
        return _changed_entry(caller, "mkdir", caller.ask("fs.mkdir", arguments), root, path)


def move(caller: Caller, root: str, path: bytes, to: bytes, *, force: bool = False) -> dict[str, Any]:
    """Rename within one root; returns the new entry. Raises AlreadyThere unless `force`."""
    with audited(caller, "move", root, path, writing=True, to=f"{root}/{paths.format_path(to)}"):
        arguments = {"root": root, "path": paths.encode(path), "to": paths.encode(to), "replace": force}
        try:
            untrusted_reply = caller.ask("fs.move", arguments)
        except AlreadyThere as error:
            error.hint = _hint(error, "move", root, to)  # what is in the way, not what was to be moved
            raise
        return _changed_entry(caller, "move", untrusted_reply, root, to)


def remove(caller: Caller, root: str, path: bytes, *, recursive: bool = False) -> dict[str, Any]:
    """Remove a file or a directory: {removed}. A long call, which ends with the caller's connection.

    Raises RemovalIncomplete when entries of a directory remain, after everything else is removed.
    """
    with (
        audited(caller, "remove", root, path, writing=True, recursive=recursive) as result,
        long_calls.counted(caller),
    ):
        arguments = {"root": root, "path": paths.encode(path), "recursive": recursive}

        def note(untrusted_reply: dict[str, Any]) -> None:
            # So far, in case the call fails.
            result["removed"] = untrusted.get_count(untrusted_reply, "removed")

        untrusted_reply = caller.ask("fs.remove", arguments, hangup_fd=caller.hangup_fd, on_progress=note)
        result["removed"] = untrusted.get_count(untrusted_reply, "removed")
        remaining = untrusted.get_count(untrusted_reply, "remaining")
        if remaining:
            result["remaining"] = remaining
            raise _incomplete(untrusted_reply, root, path, result["removed"], remaining)
        return {"removed": result["removed"]}


def _incomplete(
    untrusted_reply: Mapping[str, Any], root: str, path: bytes, removed: int, remaining: int
) -> RemovalIncomplete:
    """The error that names what remains; its hint lists the directory of the first entry."""
    lines: list[str] = []
    above = path
    for untrusted_row in untrusted.get_rows(untrusted_reply, "kept", KEPT_MAX):
        entry = paths.decode(untrusted.get_text(untrusted_row, "path", TARGET_MAX))
        above = above if lines else entry.rpartition(b"/")[0] or path
        lines.append(f"{root}/{paths.format_path(entry)}: {untrusted.get_text(untrusted_row, 'reason')}")
    if remaining > len(lines):
        lines.append(f"and {remaining - len(lines)} more")
    what = "1 entry remains" if remaining == 1 else f"{remaining} entries remain"
    return RemovalIncomplete(
        f"{what} of {root}/{paths.format_path(path)}; {removed} removed",
        hint=f"svc fs ls {command_argument(root, above)}",
        details={"removed": removed, "remaining": remaining, "output": lines},
    )


# --- checks of replies ------------------------------------------------------------------


def etag(untrusted_reply: Mapping[str, Any]) -> str:
    """A strong entity tag without quotes, which changes whenever a file's content may have changed."""
    identity = [
        untrusted.get_integer(untrusted_reply, key) for key in ("device", "inode", "size", "mtime_ns")
    ]
    return hashlib.sha256(repr(identity).encode("ascii")).hexdigest()[:32]


def moment(mtime_ns: int) -> str | None:
    """A file's time as RFC 3339 with milliseconds; None for a year outside 1 to 9999."""
    seconds, rest = divmod(mtime_ns, 10**9)
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        return None
    if not 1 <= parts.tm_year <= 9999:
        return None
    return f"{parts.tm_year:04d}-{time.strftime('%m-%dT%H:%M:%S', parts)}.{rest // 10**6:03d}Z"


def _own_entry(untrusted_reply: Mapping[str, Any], root: str, path: bytes) -> dict[str, Any]:
    """The entry of the requested path; a root's name is its id."""
    row = _checked_row(untrusted_reply.get("entry"))
    return _entry(paths.name_of(path) or root.encode(), path, row)


def _changed_entry(
    caller: Caller, verb: str, untrusted_reply: Mapping[str, Any], root: str, path: bytes
) -> dict[str, Any]:
    """The entry after a change that the agent has reported as done, whatever else it says of it."""
    try:
        return _own_entry(untrusted_reply, root, path)
    except EngineFailed as error:  # the change stands: an error would deny it
        log("domain", error.message, "warning", rid=caller.rid, verb=f"fs.{verb}")
        return _entry(paths.name_of(path), path, UNKNOWN)


def _entries(untrusted_rows: Any, path: bytes, most: int) -> list[dict[str, Any]]:
    if type(untrusted_rows) is not list or len(untrusted_rows) > most:
        raise _malformed()
    prefix = path + b"/" if path else b""
    entries = []
    for untrusted_row in untrusted_rows:
        row = _checked_row(untrusted_row)
        name = paths.decode_name(row[0])
        entries.append(_entry(name, prefix + name, row))
    return entries


def _checked_row(untrusted_row: Any) -> Row:
    """A row of an agent, checked: name, type, size, mtime_ns, mode, target, owner."""
    if type(untrusted_row) is not list or len(untrusted_row) != ENTRY_KEYS:
        raise _malformed()
    name, kind, size, mtime_ns, mode, target, owner = untrusted_row
    numbers = type(size) is int and type(mtime_ns) is int and type(mode) is int
    if type(name) is not str or len(name) > TARGET_MAX or not numbers or kind not in TYPES:
        raise _malformed()
    if not 0 <= size <= NUMBER_MAX or mtime_ns.bit_length() > INTEGER_BITS or not 0 <= mode <= 0o7777:
        raise _malformed()
    if target is not None and (type(target) is not str or len(target) > TARGET_MAX):
        raise _malformed()
    if owner is not None and (type(owner) is not str or len(owner) > OWNER_MAX):
        raise _malformed()
    return name, kind, size, mtime_ns, mode, target, owner


def _entry(name: bytes, path: bytes, row: Row) -> dict[str, Any]:
    _, kind, size, mtime_ns, mode, target, owner = row
    return {
        "name": paths.format_path(name),
        "path": paths.encode(path),
        "utf8": paths.is_text(name),
        "type": kind,
        "size": size,
        "modified_at": None if mtime_ns is None else moment(mtime_ns),
        "mode": f"{mode:04o}",
        "target": None if target is None else paths.format_path(paths.decode(target)),
        "owner": owner,
    }


def _malformed() -> EngineFailed:
    return EngineFailed("the engine's reply has invalid entries")
