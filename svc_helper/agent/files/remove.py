"""Remove files and directories below a file root: `fs.remove`.

A tree of any depth is removed without recursion and with few descriptors, each
entry relative to its directory's descriptor. Links are removed, not followed; a
directory that is replaced with a link meanwhile is too. What cannot be removed
(a mount point, which is never entered) is kept and listed, and the rest is removed.
Trees of subordinate ids are removed in the user's namespace: namespace.py.
"""

from __future__ import annotations

import errno
import os
import stat
import time

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.files import beneath
from svc_helper.agent.files.namespace import Namespace
from svc_helper.agent.files.sizes import Caller
from svc_helper.agent.podman.podman import Podman
from svc_helper.wire.arguments import path_bytes, path_text
from svc_helper.wire.quick_typing import Any

_OPEN_MAX = 32  # open directories of one call
_NAMES_MAX = 10_000  # names of subdirectories in memory, of all levels together
_NAMES_LEAST = 16  # of these, for each level
_RETRIES_MAX = 8  # reads of a directory that another process fills again
_CHECK_EVERY = 256  # names between checks of the caller and the clock
_PROGRESS_S = 1.0
_PATH_MAX = 1000  # bytes of a path in a message
_KEPT_MAX = 1000  # entries that cannot be removed, with their names in memory; the removal ends there
_LISTED_MAX = 20  # of these, in the reply
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
_SAME_FILE_SYSTEM = beneath.NO_XDEV | beneath.NO_SYMLINKS
_NO_DIRECTORY = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_NOT_EMPTY = frozenset({errno.ENOTEMPTY, errno.EEXIST})
_FINAL = frozenset({errno.EAGAIN, errno.EMFILE, errno.ENFILE, errno.ENOMEM})  # these end the removal


def remove(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """`fs.remove`: {"removed": names, "remaining": names, "kept": [{path, reason}]}.

    A directory that is not empty needs `recursive`. Progress is {"removed": names so
    far}. `kept` has the first names that could not be removed; the directories above
    them remain too and are not counted. The message of a failed call includes how many
    names it had removed before.
    """
    path = path_bytes(args["path"])
    if not path:
        raise Failure("conflict", "a file root itself cannot be removed")
    with (
        beneath.closing(beneath.root(podman.home, args["root"], write=True)) as root,
        beneath.refusing(path),
        Namespace(podman.home, call) as namespace,
    ):
        return remove_below(call, root, path, recursive=args["recursive"], namespace=namespace)


def remove_below(
    caller: Caller, base: int, path: bytes, *, recursive: bool, namespace: Namespace | None = None
) -> dict[str, Any]:
    """Remove a path below a directory; what the user may not do, in the namespace if there is one.

    Returns what `fs.remove` does; raises OSError, and Failure for a tree.
    """
    try:
        with beneath.parent_of(base, path) as (directory, name):
            if not stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=directory)
            elif recursive:
                if namespace is not None and namespace.owners.is_subordinate(os.fstat(directory).st_uid):
                    raise PermissionError(errno.EACCES, "it can be emptied, but not removed")
                return _Removal(caller, path, namespace).remove(directory, name)
            else:
                _remove_empty(directory, name, path)
    except PermissionError:
        if namespace is None or not _is_foreign(namespace, base, path):
            raise
        done = namespace.remove(base, path, recursive=recursive)
        if done is None:
            raise
        return done
    return {"removed": 1, "remaining": 0, "kept": []}


def _is_foreign(namespace: Namespace, base: int, path: bytes) -> bool:
    """Whether the directory of a path belongs to a subordinate id."""
    above = path.rpartition(b"/")[0]
    with beneath.closing(namespace.open_(base, above, beneath.DIRECTORY)) as directory:
        return namespace.owners.is_subordinate(os.fstat(directory).st_uid)


def _remove_empty(directory: int, name: bytes, path: bytes) -> None:
    try:
        os.rmdir(name, dir_fd=directory)
    except OSError as error:
        if error.errno not in _NOT_EMPTY:
            raise
        raise Failure("conflict", f"{beneath.format_path(path)}: the directory is not empty") from None


class _Level:
    """A directory being removed, and the names of its subdirectories."""

    __slots__ = ("complete", "fd", "identity", "kept", "name", "pending", "retries")

    def __init__(self, fd: int, name: bytes) -> None:
        self.fd = fd  # -1 while it is closed
        self.name = name
        self.identity = _identity(fd)
        self.pending: list[bytes] = []
        self.kept: set[bytes] = set()  # names that cannot be removed
        self.complete = False  # whether all entries were read since rmdir() last failed
        self.retries = 0

    def close(self) -> None:
        if self.fd != -1:
            os.close(self.fd)
            self.fd = -1


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


class _Full(Exception):
    """More entries are kept than can be remembered."""


class _Removal:
    """The removal of one tree: the levels down to the current directory, and the counts."""

    def __init__(self, caller: Caller, path: bytes, namespace: Namespace | None = None) -> None:
        self.caller = caller
        self.path = path
        self.namespace = namespace
        self.levels: list[_Level] = []
        self.current = b""  # the name being processed in the last level; b"" is the level itself
        self.pending = 0  # names in all levels
        self.removed = self.remaining = 0
        self.kept: list[dict[str, str]] = []
        self.steps = 0
        self.reported_at = time.monotonic()

    def remove(self, directory: int, name: bytes) -> dict[str, Any]:
        """Remove a directory and its contents as far as possible; returns what `fs.remove` does."""
        try:
            self._enter(directory, name)
            while self.levels:
                self._continue(directory)
        except _Full:
            pass
        except OSError as error:
            raise self._failure(error) from None
        finally:
            for level in self.levels:
                level.close()
        return {"removed": self.removed, "remaining": self.remaining, "kept": self.kept}

    def _continue(self, directory: int) -> None:
        level = self.levels[-1]
        try:
            if level.pending:
                self.pending -= 1
                self._enter(level.fd, level.pending.pop())
            elif level.complete:
                self._leave(directory)
            else:
                self._remove_files(level)
        except OSError as error:
            # The first directory itself: an error of the call.
            if len(self.levels) == 1 and not self.current and not self.remaining:
                raise
            self._keep(error)

    def _keep(self, error: OSError) -> None:
        """Note the current entry as one that remains; raises the error if it concerns more than that."""
        if error.errno in _FINAL:
            raise error
        if len(self.kept) < _LISTED_MAX:
            self.kept.append({"path": path_text(self._path()), "reason": _refusal(error).message})
        level = self.levels[-1]
        if self.current:
            level.kept.add(self.current)
        else:
            self.pending -= len(level.pending)
            self._ascend()
        self._count_kept(1)

    def _ascend(self) -> None:
        """Leave the last level where it is, with what it holds."""
        level = self.levels.pop()
        level.close()
        if self.levels:
            self.levels[-1].kept.add(level.name)

    def _count_kept(self, count: int) -> None:
        self.remaining += count
        if self.remaining >= _KEPT_MAX:
            raise _Full

    def _enter(self, directory: int, name: bytes) -> None:
        """Descend into a subdirectory; if it no longer is one, the next read of its parent finds it."""
        self.current = name if self.levels else b""
        self._step()
        if self.namespace is not None and self._remove_foreign(self.namespace, directory, name):
            return
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

    def _remove_foreign(self, namespace: Namespace, directory: int, name: bytes) -> bool:
        """Remove a directory of a subordinate id in the user's namespace; whether that was possible."""
        try:
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except OSError:
            return False
        if not stat.S_ISDIR(status.st_mode) or not namespace.owners.is_subordinate(status.st_uid):
            return False
        done = namespace.remove(directory, name, recursive=True, before=self.removed)
        if done is None:
            return False
        self.removed += done["removed"]
        if done["remaining"]:
            if self.levels:
                self.levels[-1].kept.add(name)
            # Their paths begin with the name of the directory.
            above = self._above() if self.levels else self.path[: -len(name)]
            kept = [row | {"path": path_text(above) + row["path"]} for row in done["kept"]]
            self.kept = [*self.kept, *kept][:_LISTED_MAX]
            self._count_kept(done["remaining"])
        return True

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
        self.current = b""
        with os.scandir(level.fd) as entries:
            for entry in entries:
                self.current = os.fsencode(entry.name)
                self._step()
                if self.current in level.kept:
                    continue
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
        except OSError as error:
            self._keep(error)
            return
        self.removed += 1

    def _leave(self, directory: int) -> None:
        """Remove the last level, which should be empty now, and ascend."""
        level = self.levels[-1]
        self.current = b""
        parent = self._parent(level) if len(self.levels) > 1 else directory
        if level.kept:
            self._ascend()
            return
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
            self.caller.check()
            if time.monotonic() - self.reported_at >= _PROGRESS_S:
                self.reported_at = time.monotonic()
                self.caller.progress({"removed": self.removed})

    def _above(self) -> bytes:
        """The path of the last level, with a slash."""
        return b"/".join([self.path, *(level.name for level in self.levels[1:])]) + b"/"

    def _path(self) -> bytes:
        """The path of the current entry, shortened in the middle if it is very long."""
        names = [self.path, *(level.name for level in self.levels[1:])]
        if self.current:
            names.append(self.current)
        if sum(map(len, names)) > _PATH_MAX:
            names = [self.path[:_PATH_MAX], b"...", names[-1]]
        return b"/".join(names)

    def _failure(self, error: OSError) -> Failure:
        """The Failure that names the entry and how many names were removed before it."""
        refusal = _refusal(error)
        message = f"{beneath.format_path(self._path())}: {refusal.message}"
        if self.removed:
            message += f" ({self.removed} removed before it)"
        return Failure(refusal.code, message)


def _refusal(error: OSError) -> Failure:
    if error.errno == errno.EXDEV:
        return Failure("conflict", "a mount point, which is not removed")
    return beneath.refusal(error, b"")
