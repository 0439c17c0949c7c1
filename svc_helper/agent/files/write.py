"""Write a file from the app's data stream: `fs.write`, a conversation.

The bytes go into an unnamed file in the target's directory, which gets its name
when the app commits: nobody sees an incomplete file, and an aborted upload leaves
nothing. Where a file system has no unnamed files, or another file is replaced, the
file has a draft name for a while, and a lock; an unlocked draft belonged to an agent
that was killed, and is removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import select
import stat
from contextlib import suppress
from functools import cache

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.files.read import identity, require_regular
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes
from svc_helper.wire.quick_typing import Any

_PART = 1024 * 1024  # bytes per system call from the stream, and in the pipe behind it
# Bytes per system call into the file, as `cp` has them. More of them at once make Linux take its larger free
# blocks, which a virtual machine has given back to its host: each page of those is faulted in anew.
_WRITTEN = 64 * 1024
_FLUSH_EVERY = 8 * 1024 * 1024  # bytes after which writing them to the disk begins
_MODE = 0o644
_CLEANED_MAX = 100_000  # directory entries searched for old drafts: a twentieth of a second
_TRIES = 16  # another upload's cleanup may remove a new draft before it is locked
_KEEP_SIZE = 1  # FALLOC_FL_KEEP_SIZE of fallocate(2)
_NO_UNNAMED = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)  # see O_TMPFILE in open(2)
_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


def write(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.write`: progress {"ready"}, the stream to its end, message {"commit": count}; the file's identity.

    `size` is the length of the stream, if known: more bytes are `too_large`, and room
    is reserved (or `storage_full`) before the first one. Without `replace` any file of
    the name is `exists`; with it a file or a link is replaced, the link itself and not
    its target, and the new file keeps the permission bits of a file of the same user.
    """
    path = path_bytes(args["path"])
    with (
        beneath.closing(call.data_stream("input")) as stream,
        beneath.closing(beneath.root(podman.home, args["root"], write=True)) as root,
        beneath.refusing(path),
        beneath.parent_of(root, path) as (directory, name),
    ):
        return _receive(call, _Target(directory, name, path, args["replace"]), stream, args["size"])


def _receive(call: Call, target: _Target, stream: int, size: int | None) -> dict[str, Any]:
    target.mode()
    _remove_old_drafts(target.directory)
    draft = _Draft(target.directory)
    try:
        _reserve(draft.file, target.directory, size)
        call.progress({"ready": True}, wait=True)
        received = _fill(call, draft.file, stream, size)
        count = call.receive("commit")
        if type(count) is not int or count != received or size not in (None, received):
            raise Failure("protocol", "the count does not match the bytes received")
        replaced = target.take(draft)
        return identity(os.fstat(draft.file)) | {"replaced": replaced}
    finally:
        draft.close()


# --- the name --------------------------------------------------------------------------


class _Target:
    """The name that the file will have."""

    def __init__(self, directory: int, name: bytes, path: bytes, replace: bool) -> None:
        self.directory, self.name, self.path, self.replace = directory, name, path, replace

    def mode(self) -> int:
        """The permission bits for the file; raises FileExistsError, Failure for what cannot be replaced."""
        if beneath.is_draft(self.name):
            raise Failure("conflict", f"{beneath.format_path(self.path)}: such names are reserved for svc")
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
        """Give a complete file the name and sync it to the disk; whether it has replaced another."""
        os.fchmod(draft.file, self.mode())
        os.fsync(draft.file)
        replaced = False
        try:
            draft.link(self.name)
        except FileExistsError:
            if not self.replace:
                raise
            os.fchmod(draft.file, self.mode())
            draft.replace(self.name)
            replaced = True
        self._sync_name(draft)
        return replaced

    def _sync_name(self, draft: _Draft) -> None:
        """Sync the directory; if it is not readable, the file again, now with its name."""
        try:
            opened = beneath.open_(self.directory, b"", os.O_RDONLY | os.O_DIRECTORY)
        except OSError:
            os.fsync(draft.file)
            return
        with beneath.closing(opened) as directory:
            try:
                os.fsync(directory)
            except OSError as error:
                if error.errno != errno.EINVAL:  # not supported by this file system
                    raise


# --- the file before it has its name ---------------------------------------------------


class _Draft:
    """The file while it is written: locked, and unnamed where the file system allows it."""

    def __init__(self, directory: int) -> None:
        self.directory = directory
        self.name = b""  # empty while the file is unnamed
        try:
            self.file = beneath.open_(directory, b"", os.O_TMPFILE | os.O_RDWR, 0o600)
        except OSError as error:
            if error.errno not in _NO_UNNAMED:
                raise
            self._create_named()
        else:
            self._lock()

    def _create_named(self) -> None:
        for _ in range(_TRIES):
            self.name = beneath.draft()
            flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
            self.file = beneath.open_(self.directory, self.name, flags, 0o600)
            if self._lock() and os.fstat(self.file).st_nlink:
                return
            self.close()  # removed by another upload's cleanup
        raise Failure("conflict", "another program removes the files that svc creates")

    def _lock(self) -> bool:
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without locks, where no draft is ever removed
            return True
        return True

    def link(self, name: bytes) -> None:
        """Give it a new name; raises FileExistsError."""
        if not self.name:
            os.link(f"/proc/self/fd/{self.file}", name, dst_dir_fd=self.directory)
            return
        try:
            beneath.rename(self.directory, self.name, self.directory, name, beneath.NOREPLACE)
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
            # A file system without RENAME_NOREPLACE: the file has two names for a moment.
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
        """Replace a file or a link by it in one step."""
        if not self.name:
            draft = beneath.draft()
            os.link(f"/proc/self/fd/{self.file}", draft, dst_dir_fd=self.directory)
            self.name = draft
        beneath.rename(self.directory, self.name, self.directory, name)
        self.name = b""

    def close(self) -> None:
        """Close the file and remove its draft name; a file without a name is gone."""
        if self.name:
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self.directory)
        os.close(self.file)


def _remove_old_drafts(directory: int) -> None:
    """Remove the drafts that nobody has locked: their agents were killed."""
    with (
        suppress(OSError),  # the directory is not readable, or the upload itself will report the error
        beneath.closing(beneath.open_(directory, b"", os.O_RDONLY | os.O_DIRECTORY)) as listed,
        os.scandir(listed) as entries,
    ):
        for _, entry in zip(range(_CLEANED_MAX), entries, strict=False):
            name = os.fsencode(entry.name)
            if beneath.is_draft(name) and entry.is_file(follow_symlinks=False):
                _remove_unlocked(directory, name)


def _remove_unlocked(directory: int, name: bytes) -> None:
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
    with suppress(OSError), beneath.closing(os.open(name, flags, dir_fd=directory)) as file:
        if os.fstat(file).st_uid == os.geteuid():
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=directory)


# --- its bytes -------------------------------------------------------------------------


def _reserve(file: int, directory: int, size: int | None) -> None:
    """Allocate the whole file, or raise ENOSPC before most of it has been sent."""
    if not size:
        return
    disk = os.fstatvfs(directory)
    if disk.f_blocks and size > disk.f_bavail * disk.f_frsize:  # some file systems report 0 blocks
        raise OSError(errno.ENOSPC, "")
    import ctypes

    # Not os.posix_fallocate(): without support of the file system it writes into each block.
    arguments = (file, _KEEP_SIZE, ctypes.c_long(0), ctypes.c_long(size))
    if _libc().fallocate(*arguments) and ctypes.get_errno() in _DISK_FULL:
        raise OSError(ctypes.get_errno(), "")


@cache
def _libc() -> Any:
    import ctypes

    return ctypes.CDLL(None, use_errno=True)


def _fill(call: Call, file: int, stream: int, size: int | None) -> int:
    """Move the stream into the file, to its end; the bytes received."""
    reads, writes = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)  # splice needs one between a socket and a file
    with beneath.closing(reads), beneath.closing(writes):
        with suppress(OSError):  # the user's limit on pipe buffers is reached; a small pipe is slower
            fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, _PART)
        received = flushed = 0
        while True:
            try:
                count = left = os.splice(stream, writes, _PART, flags=os.SPLICE_F_NONBLOCK)
            except BlockingIOError:
                call.wait({stream: select.POLLIN})
                continue
            while left:
                left -= _move(reads, file)
            if not count:
                return received
            received += count
            if size is not None and received > size:
                raise Failure("too_large", "more bytes were received than announced")
            if received - flushed >= _FLUSH_EVERY:
                # Starts writing them to the disk while more arrive: the final sync has little left to do.
                os.posix_fadvise(file, flushed, received - flushed, os.POSIX_FADV_DONTNEED)
                flushed = received
                call.check()


def _move(pipe: int, file: int) -> int:
    try:
        return os.splice(pipe, file, _WRITTEN, flags=os.SPLICE_F_NONBLOCK)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
    rest = memoryview(os.read(pipe, _WRITTEN))  # to a file system without splice
    count = len(rest)
    while rest:
        rest = rest[os.write(file, rest) :]
    return count
