"""Making directories, and moving what is below a file root: `fs.mkdir` and `fs.move`.

The last part of a path is never followed if it is a link: a link itself is moved
and replaced, and no directory is made where one points.
"""

from __future__ import annotations

import errno
import os
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath, listing
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes

_MODE, _UMASK = 0o777, 0o022


def mkdir(podman: Podman, _call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.mkdir`: {"entry": row}; with `parents` also those above it, and each may be there already."""
    path = path_bytes(args["path"])
    root = beneath.root(podman.home, args["root"], write=True)
    try:
        with beneath.refusing(path), beneath.umask(_UMASK):
            if not args["parents"]:
                return {"entry": _make(root, path)}
            parts = path.split(b"/") if path else []
            for count in range(1, len(parts) + 1):
                _ensure(root, b"/".join(parts[:count]))
            return {"entry": listing.led_to(root, path)}
    finally:
        os.close(root)


def _make(root: int, path: bytes) -> listing.Row:
    if not path:
        raise FileExistsError(errno.EEXIST, "the root")
    directory, name = beneath.parent(root, path)
    try:
        os.mkdir(name, _MODE, dir_fd=directory)
        return _row_of(directory, name)
    finally:
        os.close(directory)


def _ensure(root: int, path: bytes) -> None:
    """Make one directory unless it, or a link that leads to one below the root, is there."""
    directory, name = beneath.parent(root, path)
    try:
        os.mkdir(name, _MODE, dir_fd=directory)
    except FileExistsError:
        try:
            os.close(beneath.open_(root, path, beneath.DIRECTORY))
        except (FileNotFoundError, NotADirectoryError):
            raise Failure(
                "exists", f"{beneath.format_path(path)}: it exists and is not a directory"
            ) from None
    finally:
        os.close(directory)


def move(podman: Podman, _call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.move`: {"entry": row of what is now there}; never over anything unless `replace` says so.

    In one step of the kernel's: there is no moment at which neither name, or half a
    tree, is there. So it is one file system's matter, and nothing is copied.
    """
    path, to = path_bytes(args["path"]), path_bytes(args["to"])
    root = beneath.root(podman.home, args["root"], write=True)
    fds = [root]
    try:
        with beneath.refusing(path):
            directory, name = beneath.parent(root, path)
            fds.append(directory)
            os.stat(name, dir_fd=directory, follow_symlinks=False)  # said before all else
        with beneath.refusing(to):
            to_directory, to_name = beneath.parent(root, to)
            fds.append(to_directory)
            if beneath.is_draft(to_name):  # it would not be listed, and the next upload there would remove it
                raise Failure("conflict", f"{beneath.format_path(to)}: such names are svc's own")
            if args["replace"] and _same_file(directory, name, to_directory, to_name):
                raise Failure("conflict", f"{beneath.format_path(to)}: another name of the same file")
            flags = 0 if args["replace"] else beneath.NOREPLACE
            try:
                beneath.rename(directory, name, to_directory, to_name, flags)
            except OSError as error:
                raise _unmoved(error, to, replace=args["replace"]) from None
            return {"entry": _row_of(to_directory, to_name)}
    finally:
        for fd in fds:
            os.close(fd)


_WORDS = {
    errno.EXDEV: "it is on another file system, and nothing is copied",
    errno.EINVAL: "a directory is not moved into itself (nor does every file system move without replacing)",
    errno.EISDIR: "a directory is not replaced by a file",
    errno.ENOTDIR: "a file is not replaced by a directory",
    errno.ENOTEMPTY: "the directory there is not empty",
    errno.EBUSY: "a mount point is neither moved nor replaced",
}


def _unmoved(error: OSError, to: bytes, *, replace: bool) -> Failure:
    number = error.errno or 0
    if replace and number == errno.EEXIST:  # what some file systems say of a directory
        number = errno.ENOTEMPTY
    if number in _WORDS:
        return Failure("conflict", f"{beneath.format_path(to)}: {_WORDS[number]}")
    return beneath.refusal(error, to)


def _same_file(directory: int, name: bytes, to_directory: int, to_name: bytes) -> bool:
    """Whether they are two names of one file: rename(2) would do nothing, and call it done."""
    try:
        found = os.stat(name, dir_fd=directory, follow_symlinks=False)
        there = os.stat(to_name, dir_fd=to_directory, follow_symlinks=False)
    except OSError:
        return False
    places = os.fstat(directory), os.fstat(to_directory)
    return os.path.samestat(found, there) and not (name == to_name and os.path.samestat(*places))


def _row_of(directory: int, name: bytes) -> listing.Row:
    row = listing.entry(directory, name)
    if row is None:
        raise FileNotFoundError(errno.ENOENT, "gone again")
    return row
