"""Create directories and move files below a file root: `fs.mkdir` and `fs.move`.

A link as the last part of a path is not followed: it is moved or replaced itself, and
no directory is created at its target.
"""

from __future__ import annotations

import errno
import os
import stat
from contextlib import ExitStack

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, listing
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes
from svc_helper.wire.quick_typing import Any

_MODE, _UMASK = 0o777, 0o022


def mkdir(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.mkdir`: {"entry": row}; with `parents` missing parents are created, and all of them may exist."""
    path = path_bytes(args["path"])
    with (
        beneath.closing(beneath.root(podman.home, args["root"], write=True)) as root,
        beneath.refusing(path),
        beneath.umask(_UMASK),
        Namespace(podman.home, call) as namespace,
    ):
        if not args["parents"]:
            return {"entry": _create(namespace, root, path)}
        parts = path.split(b"/") if path else []
        for count in range(1, len(parts) + 1):
            _ensure(root, b"/".join(parts[:count]))
        return {"entry": listing.target_row(namespace, root, path)}


def _create(namespace: Namespace, root: int, path: bytes) -> listing.Row:
    if not path:
        raise FileExistsError(errno.EEXIST, "the root")
    with beneath.parent_of(root, path) as (directory, name):
        os.mkdir(name, _MODE, dir_fd=directory)
        return _row_of(namespace, directory, name)


def _ensure(root: int, path: bytes) -> None:
    """Create a directory unless it, or a link to one below the root, exists."""
    with beneath.parent_of(root, path) as (directory, name):
        try:
            os.mkdir(name, _MODE, dir_fd=directory)
        except FileExistsError:
            try:
                os.close(beneath.open_(root, path, beneath.DIRECTORY))
            except (FileNotFoundError, NotADirectoryError):
                reason = "it exists and is not a directory"
                raise Failure("exists", f"{beneath.format_path(path)}: {reason}") from None


def move(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.move`: {"entry": row of the new name}; replaces a file or an empty directory only with `replace`.

    The kernel renames in one step, so neither both names nor half a tree ever exist.
    It works within one file system only; nothing is copied.
    """
    path, to = path_bytes(args["path"]), path_bytes(args["to"])
    with ExitStack() as stack:
        namespace = stack.enter_context(Namespace(podman.home, call))
        root = stack.enter_context(beneath.closing(beneath.root(podman.home, args["root"], write=True)))
        with beneath.refusing(path):
            directory, name = stack.enter_context(beneath.parent_of(root, path))
            os.stat(name, dir_fd=directory, follow_symlinks=False)  # a missing source is reported first
        with beneath.refusing(to):
            to_directory, to_name = stack.enter_context(beneath.parent_of(root, to))
            if beneath.is_draft(to_name):  # it would not be listed, and the next upload would remove it
                raise Failure("conflict", f"{beneath.format_path(to)}: such names are reserved for svc")
            if args["replace"] and _is_same_file(directory, name, to_directory, to_name):
                raise Failure("conflict", f"{beneath.format_path(to)}: another name of the same file")
            flags = 0 if args["replace"] else beneath.NOREPLACE
            try:
                beneath.rename(directory, name, to_directory, to_name, flags)
            except OSError as error:
                in_the_way = error.errno == errno.EEXIST and not args["replace"]
                if in_the_way and _is_directory(to_directory, to_name):
                    raise Failure("exists", f"{beneath.format_path(to)}: {_INTO}") from None
                raise _refusal(error, to, replace=args["replace"]) from None
            return {"entry": _row_of(namespace, to_directory, to_name)}


_INTO = "a directory of that name exists already; a / at its end moves into it"
_REASONS = {
    errno.EXDEV: "it is on another file system, and nothing is copied",
    errno.EINVAL: "a directory cannot be moved into itself (or this file system always replaces)",
    errno.EISDIR: "a directory cannot be replaced with a file; a / at its end moves into it",
    errno.ENOTDIR: "a file cannot be replaced with a directory",
    errno.ENOTEMPTY: "the directory of that name is not empty",
    errno.EBUSY: "a mount point cannot be moved or replaced",
}


def _refusal(error: OSError, to: bytes, *, replace: bool) -> Failure:
    number = error.errno or 0
    if replace and number == errno.EEXIST:  # some file systems' error for a directory that is not empty
        number = errno.ENOTEMPTY
    if number in _REASONS:
        return Failure("conflict", f"{beneath.format_path(to)}: {_REASONS[number]}")
    return beneath.refusal(error, to)


def _is_directory(directory: int, name: bytes) -> bool:
    try:
        return stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode)
    except OSError:
        return False


def _is_same_file(directory: int, name: bytes, to_directory: int, to_name: bytes) -> bool:
    """Whether they are two names of one file, for which rename(2) does nothing and succeeds."""
    try:
        source = os.stat(name, dir_fd=directory, follow_symlinks=False)
        target = os.stat(to_name, dir_fd=to_directory, follow_symlinks=False)
    except OSError:
        return False
    directories = os.fstat(directory), os.fstat(to_directory)
    return os.path.samestat(source, target) and not (name == to_name and os.path.samestat(*directories))


def _row_of(namespace: Namespace, directory: int, name: bytes) -> listing.Row:
    row = listing.entry(namespace, directory, name)
    if row is None:
        raise FileNotFoundError(errno.ENOENT, "removed meanwhile")
    return row
