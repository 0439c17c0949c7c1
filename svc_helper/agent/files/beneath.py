"""Opening what is below a file root and nothing else: openat2 with RESOLVE_BENEATH, never a check of a path.

Everything that the `fs` verbs touch is named by a descriptor from here: one of the
thing itself, or one of its directory and one name. Between a look and a use anybody
who shares the directory (a container, another program) may exchange a file for a
link that leads out; the kernel resolves each path in one go and refuses that.
The agent is its user, so what is beneath is no more than what the user may do.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from svc_helper.agent.calls import Failure
from svc_helper.agent.home import Home

NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH = 0x01, 0x02, 0x04, 0x08  # RESOLVE_* of openat2(2)
NOREPLACE = 1  # RENAME_NOREPLACE of renameat2(2)
DIRECTORY = os.O_PATH | os.O_DIRECTORY  # for use as a directory's descriptor only
_OPENAT2 = 437  # on every architecture
_CLONE_FS = 0x200
_DRAFT = re.compile(rb"\.svc-upload-[0-9a-f]{16}")  # of what is not whole yet
_TRIES = 16  # the kernel's EAGAIN: something was renamed while a `..` in a link was followed


def root(home: Home, name: str, *, write: bool = False) -> int:
    """The file root's own descriptor, O_PATH; close it.

    A root that is not there is made, unless svc changes nothing in it. With
    `write` a read-only root is refused (`forbidden`). An unknown one is `not_found`.
    """
    if name not in home.roots:
        raise Failure("not_found", f"this host has no file root {name}")
    if write and name in home.read_only:
        raise Failure("forbidden", f"the file root {name} is read-only")
    try:
        return os.open(home.roots[name], DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        if name in home.read_only:
            raise Failure(
                "not_found", f"the file root {name} is not there: an administrator makes it"
            ) from None
    except OSError as error:
        raise _root_refusal(error, name) from None
    try:
        os.makedirs(home.roots[name], 0o700, exist_ok=True)  # as the account's set-up does
        return os.open(home.roots[name], DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _root_refusal(error, name) from None


def _root_refusal(error: OSError, name: str) -> Failure:
    found = refusal(error, b"")
    return Failure(found.code, f"the file root {name} cannot be opened: {os.strerror(error.errno or 0)}")


def open_(directory: int, path: bytes, flags: int, mode: int = 0, *, resolve: int = 0) -> int:
    """Open a path below a directory's descriptor, in one step of the kernel's; "" is the directory itself.

    Links that stay below are followed (with O_NOFOLLOW not as the last part:
    ELOOP, or with O_PATH the link itself). `resolve` adds NO_XDEV or NO_SYMLINKS.
    The descriptor is close-on-exec; give O_NONBLOCK | O_NOCTTY for what may not be a
    regular file. OSError says why not: EXDEV is a path that leads out (or with
    NO_XDEV onto another file system), ELOOP a circle of links.
    """
    resolve |= BENEATH | NO_MAGICLINKS
    try:
        return _openat2(directory, path, flags, mode, resolve)
    except OSError as error:
        if error.errno != errno.ELOOP or flags & os.O_NOFOLLOW or resolve & NO_SYMLINKS:
            raise
    # A circle, or one of the kernel's own links (/proc/PID/root), which lead out. O_PATH opens nothing.
    try:
        os.close(_openat2(directory, path, os.O_PATH, 0, BENEATH))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def parent(directory: int, path: bytes) -> tuple[int, bytes]:
    """The descriptor (O_PATH; close it) of the directory that a path's last part is in, and that part.

    Raises Failure for the root itself, OSError as open_() does.
    """
    before, _, last = path.rpartition(b"/")
    if not path:
        raise Failure("conflict", "this cannot be done to a file root itself")
    _require_name(last)
    return open_(directory, before, DIRECTORY), last


def rename(from_directory: int, name: bytes, to_directory: int, to_name: bytes, flags: int = 0) -> None:
    """renameat2(2) of one name in one directory to one in another; EXDEV is another file system here."""
    _require_name(name)
    _require_name(to_name)
    _call(_libc().renameat2, from_directory, name, to_directory, to_name, flags)


def draft() -> bytes:
    """A fresh name for what is not whole yet."""
    return b".svc-upload-" + os.urandom(8).hex().encode()


def is_draft(name: bytes) -> bool:
    """Whether it is a name that draft() makes."""
    return _DRAFT.fullmatch(name) is not None


@contextmanager
def umask(bits: int) -> Iterator[None]:
    """Another umask for this call's thread alone; a chmod later could meet what was put in the thing's place.

    Where a thread can have none of its own, the agent's stays: fewer rights for others.
    """
    try:
        _call(_libc().unshare, _CLONE_FS)
    except OSError:
        yield
        return
    before = os.umask(bits)
    try:
        yield
    finally:
        os.umask(before)


def _require_name(name: bytes) -> None:
    """Checked before, by arguments.file_path(); a name that is a path would leave the directory."""
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise Failure("protocol", "not one name")


def _openat2(directory: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
    if b"\0" in path:  # C would stop there, and open something else
        raise Failure("protocol", "a path with NUL")
    import ctypes

    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, mode, resolve)  # struct open_how
    words = (ctypes.c_long(directory), path or b".", ctypes.byref(how), ctypes.c_size_t(ctypes.sizeof(how)))
    tries = 0
    while True:
        try:
            return _call(_libc().syscall, ctypes.c_long(_OPENAT2), *words)
        except BlockingIOError:
            tries += 1
            if tries == _TRIES:
                raise
        except OSError as error:
            if error.errno == errno.ENOSYS and not _has_openat2():
                raise Failure("failed", "files are not served: this host's kernel has no openat2") from None
            raise


def _has_openat2() -> bool:
    """Whether ENOSYS is a file system's word, and not the kernel's, whose openat2 first looks at the size."""
    try:
        _call(_libc().syscall, _OPENAT2, -1, None, None, 0)
    except OSError as error:
        return error.errno != errno.ENOSYS
    return True


def _call(function: Any, *words: Any) -> int:
    import ctypes

    while True:
        done: int = function(*words)
        if done != -1:
            return done
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


@cache
def _libc() -> Any:
    """The C library; loaded by the first use, as an agent is to be small."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


# --- what is said of it ---------------------------------------------------------------

_WORDS = {
    errno.ENOENT: ("not_found", "there is nothing of that name"),
    errno.ELOOP: ("not_found", "its links lead in a circle"),
    errno.EXDEV: ("forbidden", "it leads out of the file root"),
    errno.EACCES: ("forbidden", "the Linux user may not do that"),
    errno.EPERM: ("forbidden", "the Linux user may not do that"),
    errno.EROFS: ("forbidden", "it is on a read-only file system"),
    errno.EEXIST: ("exists", "something of that name is there already"),
    errno.ENOTDIR: ("conflict", "it, or a part of the path to it, is not a directory"),
    errno.EISDIR: ("conflict", "it is a directory"),
    errno.ENOTEMPTY: ("conflict", "the directory is not empty"),
    errno.EBUSY: ("conflict", "it is in use: a mount point, for example"),
    errno.ETXTBSY: ("conflict", "it is a program that is running"),
    errno.EAGAIN: ("conflict", "it was being changed; try again"),
    errno.ENXIO: ("conflict", "it is not a regular file"),
    errno.ENODEV: ("conflict", "it is not a regular file"),
    errno.EMLINK: ("conflict", "it has too many names"),
    errno.ENAMETOOLONG: ("conflict", "this file system takes no such name"),
    errno.EINVAL: ("conflict", "this file system takes no such name"),
    errno.EILSEQ: ("conflict", "this file system takes no such name"),
    errno.EOPNOTSUPP: ("conflict", "this file system cannot do that"),
    errno.EFBIG: ("too_large", "this file system takes no file of that size"),
    errno.ENOSPC: ("storage_full", "there is no space left on the disk"),
    errno.EDQUOT: ("storage_full", "there is no space left on the disk for this user"),
    errno.EMFILE: ("unavailable", "too many files are open at once; try again"),
    errno.ENFILE: ("unavailable", "too many files are open at once; try again"),
}


def refusal(error: OSError, path: bytes) -> Failure:
    """What a caller is told of a system call's error; the path is one below the root, or b"" for itself."""
    code, words = _WORDS.get(
        error.errno or 0, ("failed", f"the file system says: {os.strerror(error.errno or 0)}")
    )
    return Failure(code, f"{shown(path)}: {words}" if path else words)


@contextmanager
def refusing(path: bytes) -> Iterator[None]:
    """OSErrors of what is done with a path become Failures that name it."""
    try:
        yield
    except OSError as error:
        raise refusal(error, path) from None


def shown(path: bytes) -> str:
    """A path in a message: nothing in it that a terminal or a line of text takes for more than a name."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
