"""Remove files and directories below a file root: `fs.remove`.

A tree of any depth is removed without recursion and with few descriptors, each
entry relative to its directory's descriptor. Links are removed, not followed; a
directory that is replaced with a link meanwhile is too. The removal fails at a mount
point, which it never enters.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from typing import Any

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes

_OPEN_MAX = 32  # open directories of one call
_NAMES_MAX = 10_000  # names of subdirectories in memory, of all levels together
_NAMES_LEAST = 16  # of these, for each level
_RETRIES_MAX = 8  # reads of a directory that another process fills again
_CHECK_EVERY = 256  # names between checks of the caller and the clock
_PROGRESS_S = 1.0
_PATH_MAX = 1000  # bytes of a path in a message
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_SAME_FILE_SYSTEM = beneath.NO_XDEV | beneath.NO_SYMLINKS
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def remove(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.remove`: {"removed": names}; a directory that is not empty needs `recursive`.

    Progress is {"removed": names so far}. The message of a failed call includes how
    many names it had removed before.
    """
    path = path_bytes(args["path"])
    if not path:
        raise Failure("conflict", "a file root itself cannot be removed")
    with (
        beneath.closing(beneath.root(podman.home, args["root"], write=True)) as root,
        beneath.refusing(path),
        beneath.parent_of(root, path) as (directory, name),
    ):
        if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=directory)
        elif args["recursive"]:
            return {"removed": _Removal(call, path).remove(directory, name)}
        else:
            _remove_empty(directory, name, path)
    return {"removed": 1}


def _remove_empty(directory: int, name: bytes, path: bytes) -> None:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise
        reason = "the directory is not empty; use recursive to remove its contents too"
        raise Failure("conflict", f"{beneath.format_path(path)}: {reason}") from None


class _Level:
    """A directory being removed, and the names of its subdirectories."""

    __slots__ = ("complete", "fd", "identity", "name", "pending", "retries")

    def __init__(self, fd: int, name: bytes) -> None:
        self.fd = fd  # -1 while it is closed
        self.name = name
        self.identity = _identity(fd)
        self.pending: list[bytes] = []
        self.complete = False  # whether all entries were read since rmdir() last failed
        self.retries = 0

    def close(self) -> None:
        if self.fd != -1:
            os.close(self.fd)
            self.fd = -1


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


class _Removal:
    """The removal of one tree: the levels down to the current directory, and the count."""

    def __init__(self, call: Call, path: bytes) -> None:
        self.call = call
        self.path = path
        self.levels: list[_Level] = []
        self.current = b""  # the name being processed in the last level; b"" is the level itself
        self.pending = 0  # names in all levels
        self.removed = 0
        self.steps = 0
        self.reported_at = time.monotonic()

    def remove(self, directory: int, name: bytes) -> int:
        """Remove a directory and its contents; returns the number of names removed."""
        try:
            self._enter(directory, name)
            while self.levels:
                level = self.levels[-1]
                if level.pending:
                    self.pending -= 1
                    self._enter(level.fd, level.pending.pop())
                elif level.complete:
                    self._leave(directory)
                else:
                    self._remove_files(level)
        except OSError as error:
            raise self._failure(error) from None
        finally:
            for level in self.levels:
                level.close()
        return self.removed

    def _enter(self, directory: int, name: bytes) -> None:
        """Descend into a subdirectory; if it no longer is one, the next read of its parent finds it."""
        self.current = name if self.levels else b""
        self._step()
        try:
            fd = beneath.open_(directory, name, _FLAGS, resolve=_SAME_FILE_SYSTEM)
        except PermissionError:
            self._remove_closed(directory, name)
            return
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                raise
            if not self.levels:
                raise BlockingIOError(errno.EAGAIN, "replaced meanwhile") from None
            return
        try:
            self.levels.append(_Level(fd, name))
        except OSError:
            os.close(fd)
            raise
        if len(self.levels) > _OPEN_MAX:
            self.levels[-1 - _OPEN_MAX].close()

    def _remove_closed(self, directory: int, name: bytes) -> None:
        """Remove a directory that the user may not read, which works if it is empty."""
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError:
            raise PermissionError(errno.EACCES, "not readable") from None
        self.removed += 1

    def _remove_files(self, level: _Level) -> None:
        """Remove all entries but directories, whose names are kept, as many as the limits allow."""
        most = max(_NAMES_LEAST, (_NAMES_MAX - self.pending) // 2)
        with os.scandir(level.fd) as entries:
            for entry in entries:
                self.current = os.fsencode(entry.name)
                self._step()
                if entry.is_dir(follow_symlinks=False):
                    level.pending.append(self.current)
                    self.pending += 1
                    if len(level.pending) == most:
                        return
                else:
                    self._unlink(level.fd)
        level.complete = True

    def _unlink(self, directory: int) -> None:
        try:
            os.unlink(self.current, dir_fd=directory)
        except (FileNotFoundError, IsADirectoryError):
            return  # removed, or replaced with a directory, which the next read finds
        self.removed += 1

    def _leave(self, directory: int) -> None:
        """Remove the last level, which should be empty now, and ascend."""
        level = self.levels[-1]
        self.current = b""
        parent = self._parent(level) if len(self.levels) > 1 else directory
        try:
            os.rmdir(level.name, dir_fd=parent)
            self.removed += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NOT_EMPTY and level.retries < _RETRIES_MAX:
                level.retries += 1
                level.complete = False
                return
            if error.errno != errno.ENOTDIR or len(self.levels) == 1:
                raise
        self.levels.pop().close()

    def _parent(self, level: _Level) -> int:
        """The parent of the last level, opened again if it was closed, provided it is the same directory."""
        parent = self.levels[-2]
        if parent.fd == -1:
            parent.fd = os.open("..", _FLAGS | os.O_CLOEXEC, dir_fd=level.fd)
            if _identity(parent.fd) != parent.identity:
                raise BlockingIOError(errno.EAGAIN, "moved meanwhile")
        return parent.fd

    def _step(self) -> None:
        """Count a name; now and then check the caller and the clock, and report progress."""
        self.steps += 1
        if self.steps % _CHECK_EVERY == 0:
            self.call.check()
            if time.monotonic() - self.reported_at >= _PROGRESS_S:
                self.reported_at = time.monotonic()
                self.call.progress({"removed": self.removed})

    def _failure(self, error: OSError) -> Failure:
        """The Failure that names the entry and how many names were removed before it."""
        names = [self.path, *(level.name for level in self.levels[1:])]
        if self.current:
            names.append(self.current)
        if sum(map(len, names)) > _PATH_MAX:
            names = [self.path[:_PATH_MAX], b"...", names[-1]]
        path = b"/".join(names)
        if error.errno == errno.EXDEV:
            failure = Failure("conflict", f"{beneath.format_path(path)}: a mount point, which is not removed")
        else:
            failure = beneath.refusal(error, path)
        if self.removed:
            failure = Failure(failure.code, f"{failure.message} ({self.removed} removed before it)")
        return failure
