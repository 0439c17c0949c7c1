"""A file out of the app's line: `fs.write`, a conversation.

The bytes go into an unnamed file in the target's directory, and it gets its name
when all have come and the app has said so: nobody ever sees a part of it, and
whatever ends before leaves nothing. Where a file system has no unnamed files, or
another file is replaced, it has a draft's name for a while, and a lock; a draft
that nobody has locked is a dead agent's and is removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.files.read import given_pipe, identity, require_regular
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes

_PART = 1024 * 1024  # moved at once: what the app's pipe holds
_COPIED = 64 * 1024  # at once, to a file system that the kernel cannot move to
_WRITTEN_EVERY = 8 * 1024 * 1024  # bytes given to the disk at once
_MODE = 0o644
_SWEPT_MAX = 100_000  # names looked through for old drafts: a twentieth of a second
_TRIES = 16  # another's sweep may take a fresh draft before it is locked
_KEEP_SIZE = 1  # of fallocate(2)
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)  # see O_TMPFILE in open(2)
_SHORT = frozenset({errno.ENOSPC, errno.EDQUOT})


def write(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.write`: progress {"ready"}, the pipe to its end, word {"commit": count}; what the file then is.

    `size` is what will come, if that is known: more is `too_large`, and for less there
    is room or `storage_full` before a byte is taken. Without `replace` whatever has
    the name is in the way (`exists`); with it a file or a link is, the link itself,
    never what it leads to, and the new file keeps the permission bits of an old one of
    the user's own.
    """
    path = path_bytes(args["path"])
    pipe = given_pipe(call, "input")
    try:
        root = beneath.root(podman.home, args["root"], write=True)
        try:
            with beneath.refusing(path):
                directory, name = beneath.parent(root, path)
        finally:
            os.close(root)
        try:
            with beneath.refusing(path):
                return _receive(call, _Target(directory, name, path, args["replace"]), pipe, args["size"])
        finally:
            os.close(directory)
    finally:
        os.close(pipe)


def _receive(call: Call, target: _Target, pipe: int, size: int | None) -> dict[str, Any]:
    target.look()
    _sweep(target.directory)
    draft = _Draft(target.directory)
    try:
        _reserve(draft.file, target.directory, size)
        call.progress({"ready": True}, wait=True)
        came = _fill(call, draft.file, pipe, size)
        count = call.receive("commit")
        if type(count) is not int or count != came or size not in (None, came):
            raise Failure("protocol", "not as many bytes as have come")
        replaced = target.take(draft)
        return identity(os.fstat(draft.file)) | {"replaced": replaced}
    finally:
        draft.close()


# --- the name --------------------------------------------------------------------------


class _Target:
    """The name that the file is to have."""

    def __init__(self, directory: int, name: bytes, path: bytes, replace: bool) -> None:
        self.directory, self.name, self.path, self.replace = directory, name, path, replace

    def look(self) -> int:
        """The permission bits for the file; Failure for what cannot be replaced."""
        if beneath.is_draft(self.name):
            raise Failure("conflict", f"{beneath.shown(self.path)}: such names are svc's own")
        try:
            found = os.stat(self.name, dir_fd=self.directory, follow_symlinks=False)
        except FileNotFoundError:
            return _MODE
        if not self.replace:
            raise FileExistsError(errno.EEXIST, "")
        if stat.S_ISLNK(found.st_mode):
            return _MODE
        require_regular(found.st_mode, self.path)
        return found.st_mode & 0o777 if found.st_uid == os.geteuid() else _MODE

    def take(self, draft: _Draft) -> bool:
        """Give a complete file the name, on the disk for good; whether it has replaced another."""
        os.fchmod(draft.file, self.look())
        os.fsync(draft.file)
        replaced = False
        try:
            draft.link(self.name)
        except FileExistsError:
            if not self.replace:
                raise
            os.fchmod(draft.file, self.look())
            draft.replace(self.name)
            replaced = True
        self._keep(draft)
        return replaced

    def _keep(self, draft: _Draft) -> None:
        """Write the directory to the disk; where it may not be read, the file again, now with its name."""
        try:
            directory = beneath.open_(self.directory, b"", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            os.fsync(draft.file)
            return
        try:
            os.fsync(directory)
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that does not do that
                raise
        finally:
            os.close(directory)


# --- the file before it has its name ---------------------------------------------------


class _Draft:
    """The file while it is written: locked, and without a name wherever that can be."""

    def __init__(self, directory: int) -> None:
        self.directory = directory
        self.name = b""  # empty while it has none
        try:
            self.file = beneath.open_(directory, b"", os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
            self._make_named()
        else:
            self._lock()

    def _make_named(self) -> None:
        for _ in range(_TRIES):
            self.name = beneath.draft()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self.file = beneath.open_(self.directory, self.name, flags, 0o600)
            if self._lock() and os.fstat(self.file).st_nlink:
                return
            self.close()  # another write's sweep was quicker
        raise Failure("conflict", "another program removes the files that svc makes")

    def _lock(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks: nothing is swept there
            return True
        return True

    def link(self, name: bytes) -> None:
        """Give it a name that nothing has; FileExistsError."""
        if not self.name:
            os.link(f"/proc/self/fd/{self.file}", name, dst_dir_fd=self.directory)
            return
        try:
            beneath.rename(self.directory, self.name, self.directory, name, beneath.NOREPLACE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # A file system that cannot rename so: two names for a moment.
            os.link(
                self.name,
                name,
                src_dir_fd=self.directory,
                dst_dir_fd=self.directory,
                follow_symlinks=False,
            )
            os.unlink(self.name, dir_fd=self.directory)
        self.name = b""

    def replace(self, name: bytes) -> None:
        """Give it the name of a file or a link, which goes in the same moment."""
        if not self.name:
            draft = beneath.draft()
            os.link(f"/proc/self/fd/{self.file}", draft, dst_dir_fd=self.directory)
            self.name = draft
        beneath.rename(self.directory, self.name, self.directory, name)
        self.name = b""

    def close(self) -> None:
        """Let go of it; without a name of its own it is gone."""
        if self.name:
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self.directory)
        os.close(self.file)


def _sweep(directory: int) -> None:
    """Remove the drafts that nobody has locked: their agents were killed."""
    try:
        listed = beneath.open_(directory, b"", os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return  # a directory that may be written and not read
    try:
        with os.scandir(listed) as entries:
            for _, entry in zip(range(_SWEPT_MAX), entries, strict=False):
                name = os.fsencode(entry.name)
                if beneath.is_draft(name) and entry.is_file(follow_symlinks=False):
                    _remove_unlocked(directory, name)
    except OSError:
        return  # the write itself will say what is the matter
    finally:
        os.close(listed)


def _remove_unlocked(directory: int, name: bytes) -> None:
    with suppress(OSError):
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(name, flags, dir_fd=directory)
        try:
            if os.fstat(file).st_uid == os.geteuid():
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(name, dir_fd=directory)
        finally:
            os.close(file)


# --- its bytes -------------------------------------------------------------------------


def _reserve(file: int, directory: int, size: int | None) -> None:
    """Take the room for the whole file, or raise ENOSPC: better now than after most of it."""
    if not size:
        return
    disk = os.fstatvfs(directory)
    if disk.f_blocks and size > disk.f_bavail * disk.f_frsize:  # some do not know
        raise OSError(errno.ENOSPC, "")
    import ctypes

    # Not os.posix_fallocate(): where the file system cannot do it, that writes into each block.
    words = (file, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size))
    if _libc().fallocate(*words) and ctypes.get_errno() in _SHORT:
        raise OSError(ctypes.get_errno(), "")


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _fill(call: Call, file: int, pipe: int, size: int | None) -> int:
    """Move what comes over the line into the file, to its end; how many bytes."""
    if not stat.S_ISSOCK(os.fstat(pipe).st_mode):
        return _fill_from(call, file, pipe, size, lambda: _move(pipe, file))
    reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)  # the kernel moves nothing from a socket to a file
    try:
        with suppress(OSError):  # the user has many already; a small one is slower
            fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, _PART)
        return _fill_from(call, file, pipe, size, lambda: _move_between(pipe, writes, reads, file))
    finally:
        os.close(reads)
        os.close(writes)


def _move_between(line: int, writes: int, reads: int, file: int) -> int:
    came = left = os.splice(line, writes, _PART, flags=os.SPLICE_F_NONBLOCK)
    while left:
        left -= _move(reads, file)
    return came


def _fill_from(call: Call, file: int, line: int, size: int | None, move: Callable[[], int]) -> int:
    came = written = 0
    while True:
        try:
            moved = move()
        except BlockingIOError:
            call.wait({line: select.POLLIN})
            continue
        if not moved:
            return came
        came += moved
        if size is not None and came > size:
            raise Failure("too_large", "more bytes came than were announced")
        if came - written >= _WRITTEN_EVERY:
            # Begins to write them to the disk, while more come: at the end little is left to wait for.
            os.posix_fadvise(file, written, came - written, os.POSIX_FADV_DONTNEED)
            written = came
            call.check()


def _move(pipe: int, file: int) -> int:
    try:
        return os.splice(pipe, file, _PART, flags=os.SPLICE_F_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    rest = memoryview(os.read(pipe, _COPIED))  # to a file system without splice
    came = len(rest)
    while rest:
        rest = rest[os.write(file, rest) :]
    return came
