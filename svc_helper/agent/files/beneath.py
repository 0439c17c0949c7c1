"""Open files below a file root and nowhere else: openat2 with RESOLVE_BENEATH, never a check of a path.

The `fs` verbs use descriptors from this module only: that of a file, or that of its
directory together with one name. Whoever shares the directory (a container, another
program) may replace a file with a link that leads out between a check and its use;
the kernel resolves a path in one step and refuses such a link. The agent runs as
its user, so the user's permissions apply.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, lru_cache

from svc_helper.agent.calls import Failure
from svc_helper.agent.home import Home
from svc_helper.wire.quick_typing import Any

NO_XDEV, NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = (
    0x01,
    0x02,
    0x04,
    0x08,
    0x10,
)  # RESOLVE_* of openat2(2)
NOREPLACE = 1  # RENAME_NOREPLACE of renameat2(2)
DIRECTORY = os.O_PATH | os.O_DIRECTORY  # for use as a directory's descriptor only
_OPENAT2 = 437  # on every architecture
_CLONE_FS = 0x200
_DRAFT_START = b".svc-upload-"
_DRAFT = re.compile(re.escape(_DRAFT_START) + rb"[0-9a-f]{16}")  # an incomplete upload
_TRIES = 16  # EAGAIN: something was renamed while the kernel followed a `..` in a link


@contextmanager
def closing(fd: int) -> Iterator[int]:
    """The descriptor, closed at the end of the block."""
    try:
        yield fd
    finally:
        os.close(fd)


def root(home: Home, name: str, *, write: bool = False) -> int:
    """The descriptor (O_PATH) of a file root, which the caller closes.

    A missing root is created unless it is read-only. Raises Failure: `not_found` for
    an unknown root, with `write` `forbidden` for a read-only one.
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
                "not_found", f"the file root {name} does not exist; an administrator must create it"
            ) from None
    except OSError as error:
        raise _root_refusal(error, name) from None
    try:
        os.makedirs(home.roots[name], 0o700, exist_ok=True)  # as provisioning does
        return os.open(home.roots[name], DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _root_refusal(error, name) from None


def _root_refusal(error: OSError, name: str) -> Failure:
    reason = os.strerror(error.errno or 0)
    return Failure(refusal(error, b"").code, f"the file root {name} cannot be opened: {reason}")


def open_(directory: int, path: bytes, flags: int, mode: int = 0, *, resolve: int = 0) -> int:
    """Open a path below a directory, resolved by the kernel in one step; "" is the directory itself.

    Links that stay below are followed; with O_NOFOLLOW a link as the last part is
    ELOOP, with O_PATH too the link itself. `resolve` adds NO_XDEV or NO_SYMLINKS.
    The descriptor is close-on-exec; pass O_NONBLOCK | O_NOCTTY for what may not be a
    regular file. Raises OSError: EXDEV for a path that leads out (or with NO_XDEV
    across a mount point), ELOOP for a loop of links.
    """
    resolve |= BENEATH | NO_MAGICLINKS
    try:
        return _openat2(directory, path, flags, mode, resolve)
    except OSError as error:
        if error.errno != errno.ELOOP or flags & os.O_NOFOLLOW or resolve & NO_SYMLINKS:
            raise
    # Either a loop of links, or a magic link of the kernel (/proc/PID/root), which leads out.
    try:
        os.close(_openat2(directory, path, os.O_PATH, 0, BENEATH))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise
    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def opener(flags: int, resolve: int) -> Callable[[int, bytes], int]:
    """open_() of many single names, without its care for errors: the descriptor, or -1; then call open_()."""
    syscall, number, long, how, size = _prepared(flags, 0, resolve | BENEATH | NO_MAGICLINKS)

    def open_name(directory: int, name: bytes) -> int:
        opened: int = syscall(number, long(directory), name, how, size) if b"\0" not in name else -1
        return opened

    return open_name


def open_in_root(directory: int, path: bytes, flags: int) -> int:
    """Open a path as a process would whose root is this directory: absolute links and `..` stay inside.

    Raises OSError; no magic link is followed.
    """
    return _openat2(directory, path, flags, 0, IN_ROOT | NO_MAGICLINKS)


def parent(directory: int, path: bytes) -> tuple[int, bytes]:
    """The descriptor (O_PATH, which the caller closes) of a path's directory, and the path's last part.

    Raises Failure for the root itself, OSError as open_() does.
    """
    before, _, last = path.rpartition(b"/")
    if not path:
        raise Failure("conflict", "this cannot be done to the file root itself")
    _require_name(last)
    return open_(directory, before, DIRECTORY), last


@contextmanager
def parent_of(directory: int, path: bytes) -> Iterator[tuple[int, bytes]]:
    """parent() for the length of a block."""
    parent_fd, name = parent(directory, path)
    with closing(parent_fd):
        yield parent_fd, name


def rename(from_directory: int, name: bytes, to_directory: int, to_name: bytes, flags: int = 0) -> None:
    """renameat2(2) of a name in one directory to a name in another; here EXDEV is another file system."""
    _require_name(name)
    _require_name(to_name)
    _call(_libc().renameat2, from_directory, name, to_directory, to_name, flags)


def draft() -> bytes:
    """A new name for an incomplete upload."""
    return _DRAFT_START + os.urandom(8).hex().encode()


def is_draft(name: bytes) -> bool:
    """Whether it is a name of the kind that draft() returns."""
    return name.startswith(_DRAFT_START) and _DRAFT.fullmatch(name) is not None


@contextmanager
def umask(bits: int) -> Iterator[None]:
    """Set the umask of this thread only; a later chmod could affect a file that has replaced the new one.

    Where a thread cannot have its own umask, the agent's applies, which gives others fewer rights.
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
    """arguments.file_path() has checked it already; a path in place of a name would leave the directory."""
    if name in (b"", b".", b"..") or b"/" in name or b"\0" in name:
        raise Failure("protocol", "not a single name")


def _openat2(directory: int, path: bytes, flags: int, mode: int, resolve: int) -> int:
    if b"\0" in path:  # C would end the path there and open another file
        raise Failure("protocol", "a path with a NUL byte")
    syscall, number, long, how, size = _prepared(flags, mode, resolve)
    tries = 0
    while True:
        try:
            return _call(syscall, number, long(directory), path or b".", how, size)
        except BlockingIOError:
            tries += 1
            if tries == _TRIES:
                raise
        except OSError as error:
            if error.errno == errno.ENOSYS and not _has_openat2():
                raise Failure("failed", "files are unavailable: this host's kernel has no openat2") from None
            raise


@lru_cache(maxsize=32)
def _prepared(flags: int, mode: int, resolve: int) -> tuple[Any, ...]:
    """What calls of the same kind pass to openat2; the kernel only reads it, so that threads may share it."""
    import ctypes

    how = (ctypes.c_uint64 * 3)(flags | os.O_CLOEXEC, mode, resolve)  # struct open_how
    size = ctypes.c_size_t(ctypes.sizeof(how))
    return _libc().syscall, ctypes.c_long(_OPENAT2), ctypes.c_long, ctypes.byref(how), size


def _has_openat2() -> bool:
    """Whether the kernel has openat2, so that an ENOSYS is a file system's; it checks the size first."""
    try:
        _call(_libc().syscall, _OPENAT2, -1, None, None, 0)
    except OSError as error:
        return error.errno != errno.ENOSYS
    return True


def _call(function: Any, *arguments: Any) -> int:
    import ctypes

    while True:
        result: int = function(*arguments)
        if result != -1:
            return result
        number = ctypes.get_errno()
        if number != errno.EINTR:
            raise OSError(number, os.strerror(number))


@cache
def _libc() -> Any:
    """The C library, loaded by its first use to keep agents small."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return libc


# --- error messages -------------------------------------------------------------------

_REASONS = {
    errno.ENOENT: ("not_found", "no such file or directory"),
    errno.ELOOP: ("not_found", "its symbolic links form a loop"),
    errno.EXDEV: ("forbidden", "it leads out of the file root"),
    errno.EACCES: ("forbidden", "the Linux user may not do that"),
    errno.EPERM: ("forbidden", "the Linux user may not do that"),
    errno.EROFS: ("forbidden", "it is on a read-only file system"),
    errno.EEXIST: ("exists", "a file of that name exists already"),
    errno.ENOTDIR: ("conflict", "it, or a part of the path to it, is not a directory"),
    errno.EISDIR: ("conflict", "it is a directory"),
    errno.ENOTEMPTY: ("conflict", "the directory is not empty"),
    errno.EBUSY: ("conflict", "it is in use, for example as a mount point"),
    errno.ETXTBSY: ("conflict", "it is a running program"),
    errno.EAGAIN: ("conflict", "it was being changed; try again"),
    errno.ENXIO: ("conflict", "it is not a regular file"),
    errno.ENODEV: ("conflict", "it is not a regular file"),
    errno.EMLINK: ("conflict", "it has too many hard links"),
    errno.ENAMETOOLONG: ("conflict", "this file system does not accept such a name"),
    errno.EINVAL: ("conflict", "this file system does not accept such a name"),
    errno.EILSEQ: ("conflict", "this file system does not accept such a name"),
    errno.EOPNOTSUPP: ("conflict", "this file system does not support that"),
    errno.EFBIG: ("too_large", "this file system does not support files of that size"),
    errno.ENOSPC: ("storage_full", "there is no space left on the disk"),
    errno.EDQUOT: ("storage_full", "there is no space left on the disk for this user"),
    errno.EMFILE: ("unavailable", "too many files are open; try again"),
    errno.ENFILE: ("unavailable", "too many files are open; try again"),
}


def refusal(error: OSError, path: bytes) -> Failure:
    """The Failure for a system call's error; the path is one below the root, or b"" to name none."""
    number = error.errno or 0
    code, reason = _REASONS.get(number, ("failed", f"file system error: {os.strerror(number)}"))
    return Failure(code, f"{format_path(path)}: {reason}" if path else reason)


@contextmanager
def refusing(path: bytes) -> Iterator[None]:
    """Raise OSErrors of the block as Failures that name the path."""
    try:
        yield
    except OSError as error:
        raise refusal(error, path) from None


def format_path(path: bytes) -> str:
    """A path for a message, without characters that control a terminal or end a line."""
    text = path.decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
