"""Removing what is below a file root: `fs.remove`.

A tree is walked by descriptors, one name at a time, without recursion and with few
descriptors, however deep it is. Links are removed and never followed, and another
file system is never entered: a mount point ends it. Whoever exchanges a directory
for a link meanwhile gets the link removed.
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

_OPEN_MAX = 32  # directories open at once, of one call
_NAMES_MAX = 10_000  # subdirectories that are known at once, of all directories on the way down
_NAMES_LEAST = 16  # of one directory, however many those above it have
_LOOKS_MAX = 8  # more, through a directory that something fills again
_CHECK_EVERY = 256  # names removed between looks at the caller and the clock
_PROGRESS_S = 1.0
_SHOWN_MAX = 1000  # bytes of a path in a message
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_SAME_FILE_SYSTEM = beneath.NO_XDEV | beneath.NO_SYMLINKS
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def remove(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.remove`: {"removed": names}; a directory that is not empty only with `recursive`.

    Progress is {"removed": names so far}. A call that fails has removed what it had
    come to, and says how much that was.
    """
    path = path_bytes(args["path"])
    if not path:
        raise Failure("conflict", "a file root itself is not removed")
    root = beneath.root(podman.home, args["root"], write=True)
    try:
        with beneath.refusing(path):
            directory, name = beneath.parent(root, path)
            try:
                if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                    os.unlink(name, dir_fd=directory)
                elif args["recursive"]:
                    return {"removed": _Removal(call, path).remove(directory, name)}
                else:
                    _remove_empty(directory, name, path)
            finally:
                os.close(directory)
    finally:
        os.close(root)
    return {"removed": 1}


def _remove_empty(directory: int, name: bytes, path: bytes) -> None:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise
        words = "it is a directory with something in it; use recursive to remove both"
        raise Failure("conflict", f"{beneath.format_path(path)}: {words}") from None


class _Level:
    """A directory on the way down, and what is known of its subdirectories."""

    __slots__ = ("fd", "identity", "looks", "name", "seen", "waiting")

    def __init__(self, fd: int, name: bytes) -> None:
        self.fd = fd  # -1: closed meanwhile
        self.name = name
        self.identity = _identity(fd)
        self.waiting: list[bytes] = []
        self.seen = False  # all names, since it was last found not to be empty
        self.looks = 0

    def close(self) -> None:
        if self.fd != -1:
            os.close(self.fd)
            self.fd = -1


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


class _Removal:
    """One tree's removal: the way down to where it is, and the count."""

    def __init__(self, call: Call, path: bytes) -> None:
        self.call = call
        self.path = path
        self.levels: list[_Level] = []
        self.at = b""  # the name that is being seen to in the last level; b"" is the level itself
        self.known = 0  # names that wait, in all levels
        self.removed = 0
        self.turns = 0
        self.told = time.monotonic()

    def remove(self, directory: int, name: bytes) -> int:
        """Remove the directory of that name and all in it; the number of names removed."""
        try:
            self._enter(directory, name)
            while self.levels:
                level = self.levels[-1]
                if level.waiting:
                    self.known -= 1
                    self._enter(level.fd, level.waiting.pop())
                elif level.seen:
                    self._leave(directory)
                else:
                    self._look(level)
        except OSError as error:
            raise self._stopped(error) from None
        finally:
            for level in self.levels:
                level.close()
        return self.removed

    def _enter(self, directory: int, name: bytes) -> None:
        """Go down into a subdirectory; one that is none any more is left to the next look."""
        self.at = name if self.levels else b""
        self._turn()
        try:
            fd = beneath.open_(directory, name, _FLAGS, resolve=_SAME_FILE_SYSTEM)
        except PermissionError:
            self._remove_closed(directory, name)
            return
        except OSError as error:
            if error.errno not in _NO_DIRECTORY:
                raise
            if not self.levels:
                raise BlockingIOError(errno.EAGAIN, "exchanged meanwhile") from None
            return
        try:
            self.levels.append(_Level(fd, name))
        except OSError:
            os.close(fd)
            raise
        if len(self.levels) > _OPEN_MAX:
            self.levels[-1 - _OPEN_MAX].close()

    def _remove_closed(self, directory: int, name: bytes) -> None:
        """Remove a directory that the user may not look into, which works if it is empty."""
        try:
            os.rmdir(name, dir_fd=directory)
        except OSError:
            raise PermissionError(errno.EACCES, "cannot be looked into") from None
        self.removed += 1

    def _look(self, level: _Level) -> None:
        """Remove what is no directory, and note the directories, as many as may be known at once."""
        most = max(_NAMES_LEAST, (_NAMES_MAX - self.known) // 2)
        with os.scandir(level.fd) as found:
            for each in found:
                self.at = os.fsencode(each.name)
                self._turn()
                if each.is_dir(follow_symlinks=False):
                    level.waiting.append(self.at)
                    self.known += 1
                    if len(level.waiting) == most:
                        return
                else:
                    self._unlink(level.fd)
        level.seen = True

    def _unlink(self, directory: int) -> None:
        try:
            os.unlink(self.at, dir_fd=directory)
        except (FileNotFoundError, IsADirectoryError):
            return  # gone, or become a directory: the next look finds it
        self.removed += 1

    def _leave(self, directory: int) -> None:
        """Remove the last level, which should be empty now, and go up."""
        level = self.levels[-1]
        self.at = b""
        above = self._above(level) if len(self.levels) > 1 else directory
        try:
            os.rmdir(level.name, dir_fd=above)
            self.removed += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno in _NOT_EMPTY and level.looks < _LOOKS_MAX:
                level.looks += 1
                level.seen = False
                return
            if error.errno != errno.ENOTDIR or len(self.levels) == 1:
                raise
        self.levels.pop().close()

    def _above(self, level: _Level) -> int:
        """The directory that the last level is in: opened again if it was closed; only if it is the same."""
        parent = self.levels[-2]
        if parent.fd == -1:
            parent.fd = os.open("..", _FLAGS | os.O_CLOEXEC, dir_fd=level.fd)
            if _identity(parent.fd) != parent.identity:
                raise BlockingIOError(errno.EAGAIN, "moved meanwhile")
        return parent.fd

    def _turn(self) -> None:
        """One name more: now and then look at the caller and the clock, and say how far it is."""
        self.turns += 1
        if self.turns % _CHECK_EVERY == 0:
            self.call.check()
            if time.monotonic() - self.told >= _PROGRESS_S:
                self.told = time.monotonic()
                self.call.progress({"removed": self.removed})

    def _stopped(self, error: OSError) -> Failure:
        """The failure, with the name that it is about and what was done before."""
        names = [self.path, *(level.name for level in self.levels[1:])]
        if self.at:
            names.append(self.at)
        if sum(map(len, names)) > _SHOWN_MAX:
            names = [self.path[:_SHOWN_MAX], b"...", names[-1]]
        where = b"/".join(names)
        if error.errno == errno.EXDEV:
            failure = Failure("conflict", f"{beneath.format_path(where)}: a mount point, where removing ends")
        else:
            failure = beneath.refusal(error, where)
        if self.removed:
            failure = Failure(failure.code, f"{failure.message} ({self.removed} removed before it)")
        return failure
