"""Files below the caller's own file roots: looked at, made, moved and removed by the caller's own agent.

"Every fs operation is audited on the server": what is shown of the roots alone
is not. The bytes of files are in fs_transfers.py. Records:

    root: {id, path, mounted_at, exists, read_only, free_bytes, size_bytes}
    entry: {name, path, utf8, type (file, directory, symlink, other), size, modified_at, mode, target}
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from svc.domain import audit, configuration, long_calls
from svc.domain import untrusted as answers
from svc.domain.files import paths
from svc.domain.principal import Caller
from svc.errors import AlreadyThere, EngineFailed, FileForbidden, NotFound, ReadOnly, SvcError
from svc.limits import (
    ARCHIVE_BYTES_MAX,
    ARCHIVE_MEMBERS_MAX,
    FILE_READ_MAX,
)

WORK = "work"
MOUNTED_AT = "/work"  # "Mounts the file root `work` at `/work`"
TYPES = ("file", "directory", "symlink", "other")
TARGET_MAX = 3 * 4096  # characters of a link's encoded target
ENTRY_KEYS = 6
ROOT_HINT = "svc fs roots"


def require_root(root: str, *, writing: bool = False) -> None:
    """Raise NotFound for a root that the host does not have, ReadOnly for one in which nothing is written."""
    roots = configuration.current.file_roots
    if root not in roots:
        raise NotFound("this host has no such file root", hint=ROOT_HINT)
    if writing and roots[root]:
        raise ReadOnly(f"the file root {root} is read-only", hint=ROOT_HINT)


@contextmanager
def audited(
    caller: Caller, verb: str, root: str, path: bytes, *, writing: bool = False, **detail: Any
) -> Iterator[dict[str, Any]]:
    """One operation on one path: its two audit rows, its root, and the way out of what an agent refuses."""
    place = f"{root}/{paths.shown(path)}"
    with audit.audited(caller, f"fs.{verb}", place, **detail) as told:
        require_root(root, writing=writing)
        try:
            yield told
        except SvcError as error:
            if not error.hint:
                error.hint = _way_out(error, root, path)
            raise


def _way_out(error: SvcError, root: str, path: bytes) -> str:
    above = path.rpartition(b"/")[0]
    if isinstance(error, NotFound | FileForbidden) and path:
        return f"svc fs ls {command_word(root, above)}"
    if isinstance(error, AlreadyThere):
        return f"svc fs ls {command_word(root, path)}  # --force replaces a file"
    return ""


def command_word(root: str, path: bytes) -> str:
    """A place as the command line takes it; where it would need more than plain letters, its root."""
    encoded = paths.encode(path)
    return f"{root}/{encoded}" if encoded and "%" not in encoded else root


# --- what is asked ----------------------------------------------------------------------


def list_roots(caller: Caller) -> dict[str, Any]:
    """The caller's file roots: {items, limits}."""
    roots = configuration.current.file_roots
    untrusted = answers.get_rows(caller.ask("fs.roots", {}), "roots", len(roots) + 1)
    found = {answers.get_text(row, "id", 64): row for row in untrusted}
    return {
        "items": [_root(name, found[name]) for name in roots if name in found],
        "limits": {
            "upload_max_bytes": configuration.current.upload_max,
            "read_max_bytes": FILE_READ_MAX,
            "archive_max_members": ARCHIVE_MEMBERS_MAX,
            "archive_max_bytes": ARCHIVE_BYTES_MAX,
        },
    }


def _root(name: str, untrusted: Mapping[str, Any]) -> dict[str, Any]:
    place = paths.decode(answers.get_text(untrusted, "path", TARGET_MAX))
    room = {key: answers.find_number(untrusted, key) for key in ("free_bytes", "size_bytes")}
    return {
        "id": name,
        "path": paths.shown(place),
        "mounted_at": MOUNTED_AT if name == WORK else None,
        "exists": answers.get_flag(untrusted, "exists"),
        "read_only": configuration.current.file_roots[name],
        **room,
    }


def list_(caller: Caller, root: str, path: bytes, limit: int, offset: int) -> dict[str, Any]:
    """What a path is, and a directory's entries in the order of their bytes.

    {path, entry, items, total, next_offset}; fewer than `limit` where they would
    be too long for one answer.
    """
    with audited(caller, "list", root, path) as told:
        arguments = {"root": root, "path": paths.encode(path), "offset": offset, "limit": limit}
        untrusted = caller.ask("fs.list", arguments)
        items = _entries(untrusted.get("rows"), path, limit)
        total = answers.get_count(untrusted, "total")
        told["entries"] = len(items)
        behind = offset + len(items)
        return {
            "path": paths.encode(path),
            "entry": _own_entry(untrusted, root, path),
            "items": items,
            "total": total,
            "next_offset": behind if items and behind < total else None,
        }


def mkdir(caller: Caller, root: str, path: bytes, *, parents: bool = False) -> dict[str, Any]:
    """Make a directory, with `parents` those above it too; returns its entry. Raises AlreadyThere."""
    with audited(caller, "mkdir", root, path, writing=True):
        arguments = {"root": root, "path": paths.encode(path), "parents": parents}
        return _own_entry(caller.ask("fs.mkdir", arguments), root, path)


def move(caller: Caller, root: str, path: bytes, to: bytes, *, force: bool = False) -> dict[str, Any]:
    """Rename within one root; returns the entry in its new place. Raises AlreadyThere unless `force`."""
    with audited(caller, "move", root, path, writing=True, to=f"{root}/{paths.shown(to)}"):
        arguments = {"root": root, "path": paths.encode(path), "to": paths.encode(to), "replace": force}
        return _own_entry(caller.ask("fs.move", arguments), root, to)


def remove(caller: Caller, root: str, path: bytes, *, recursive: bool = False) -> dict[str, Any]:
    """Remove a file, or a directory: {removed}. Ends with the caller's connection, and is a long call."""
    with (
        audited(caller, "remove", root, path, writing=True, recursive=recursive) as told,
        long_calls.counted(caller),
    ):
        arguments = {"root": root, "path": paths.encode(path), "recursive": recursive}

        def note(untrusted: dict[str, Any]) -> None:
            told["removed"] = answers.get_count(untrusted, "removed")  # so far, should it be cut off

        untrusted = caller.ask("fs.remove", arguments, hangup_fd=caller.hangup_fd, on_progress=note)
        told["removed"] = answers.get_count(untrusted, "removed")
        return {"removed": told["removed"]}


# --- what comes back --------------------------------------------------------------------


def etag(facts: Mapping[str, Any]) -> str:
    """A strong entity tag, without its quotes: another one as soon as a file's content may be another."""
    known = [answers.get_number(facts, key) for key in ("device", "inode", "size", "mtime_ns")]
    return hashlib.sha256(repr(known).encode("ascii")).hexdigest()[:32]


def moment(mtime_ns: int) -> str | None:
    """A file's time as rows have times; None for one in no year that can be written."""
    seconds, rest = divmod(mtime_ns, 10**9)
    try:
        parts = time.gmtime(seconds)
    except (OverflowError, OSError, ValueError):
        return None
    if not 1 <= parts.tm_year <= 9999:
        return None
    return f"{parts.tm_year:04d}-{time.strftime('%m-%dT%H:%M:%S', parts)}.{rest // 10**6:03d}Z"


def _own_entry(untrusted: Mapping[str, Any], root: str, path: bytes) -> dict[str, Any]:
    """The entry of the path that was asked for; a root's name is its id."""
    facts = _facts(untrusted.get("entry"))
    name = paths.name_of(path) or root.encode()
    return _shown(name, path, facts)


def _entries(untrusted: Any, path: bytes, most: int) -> list[dict[str, Any]]:
    if type(untrusted) is not list or len(untrusted) > most:
        raise _nonsense()
    below = path + b"/" if path else b""
    made = []
    for row in untrusted:
        facts = _facts(row)
        name = paths.decode_name(facts[0])
        made.append(_shown(name, below + name, facts))
    return made


def _facts(untrusted: Any) -> tuple[str, str, int, int, int, str | None]:
    """A row of an agent's, checked: name, type, size, mtime_ns, mode, target."""
    if type(untrusted) is not list or len(untrusted) != ENTRY_KEYS:
        raise _nonsense()
    name, kind, size, mtime_ns, mode, target = untrusted
    numbers = type(size) is int and type(mtime_ns) is int and type(mode) is int
    if type(name) is not str or len(name) > TARGET_MAX or not numbers or kind not in TYPES:
        raise _nonsense()
    if not 0 <= size <= answers.NUMBER_MAX or abs(mtime_ns) > answers.NUMBER_MAX or not 0 <= mode <= 0o7777:
        raise _nonsense()
    if target is not None and (type(target) is not str or len(target) > TARGET_MAX):
        raise _nonsense()
    return name, kind, size, mtime_ns, mode, target


def _shown(name: bytes, path: bytes, facts: tuple[str, str, int, int, int, str | None]) -> dict[str, Any]:
    _, kind, size, mtime_ns, mode, target = facts
    return {
        "name": paths.shown(name),
        "path": paths.encode(path),
        "utf8": paths.is_text(name),
        "type": kind,
        "size": size,
        "modified_at": moment(mtime_ns),
        "mode": f"{mode:04o}",
        "target": None if target is None else paths.shown(paths.decode(target)),
    }


def _nonsense() -> EngineFailed:
    return EngineFailed("the engine's answer has no usable entries")
