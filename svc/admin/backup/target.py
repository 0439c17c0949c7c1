"""The directory that snapshots are written to: pinned, its room, drafts in it that become files.

Nobody but root (or the caller) may be able to change the way to it, since root writes there; what others
have put into it is never opened, followed or counted. A draft is locked as long as its maker lives, so
that the next run can tell what an interrupted one has left.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from svc.admin.repair import UnsafeError, require_own, resolved
from svc.commandline import output
from svc.errors import FileRefused, OperationInProgress, StorageFull, SvcError

DRAFT = re.compile(r"\.(?P<final>.+)\.[0-9a-f]{8}\.partial")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Draft:
    """A file that is being written, of the caller alone; it has no name of its own yet."""

    def __init__(self, directory: int, where: str, final: str) -> None:
        self.directory = directory
        self.where = where
        self.name = f".{final}.{os.urandom(4).hex()}.partial"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self.descriptor = os.open(self.name, flags, 0o600, dir_fd=directory)
        self.is_draft = True
        try:
            self._lock()
            self._require_private()
        except BaseException:  # also an interrupt leaves no draft
            self.close()
            raise

    def _lock(self) -> None:
        with suppress(OSError):  # a file system without locks: a stale draft stays there
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _require_private(self) -> None:
        """Raise FileRefused on a file system that gives others access: it keeps no owners or modes."""
        with suppress(OSError):
            os.fchmod(self.descriptor, 0o600)  # whatever the umask
        status = os.fstat(self.descriptor)
        if status.st_uid != os.geteuid() or status.st_mode & 0o077:
            raise FileRefused(
                f"the file system of {self.where} keeps no owners and modes: others could read the snapshot",
                hint="mount it so that only root can read files there, or choose another directory",
            )

    def write(self, content: bytes) -> None:
        """Write everything, from the beginning."""
        at = 0
        while at < len(content):
            at += os.pwrite(self.descriptor, content[at:], at)

    def seal(self) -> None:
        """Make the content durable, and sure that nobody has the file open for writing any more.

        The lease is the kernel's word: it is given only where no writer is left. File
        systems without leases cannot tell; there the digest says later whether anything changed.
        """
        os.fsync(self.descriptor)
        reading = os.open(f"/proc/self/fd/{self.descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(self.descriptor)
        self.descriptor = reading
        self._lock()
        try:
            fcntl.fcntl(reading, fcntl.F_SETLEASE, fcntl.F_RDLCK)
            fcntl.fcntl(reading, fcntl.F_SETLEASE, fcntl.F_UNLCK)
        except OSError as error:
            if error.errno == errno.EAGAIN:
                raise SvcError("another process still has the snapshot open for writing") from None

    def rename(self, final: str) -> None:
        """Give the draft its name, in place of a file that has it."""
        os.rename(self.name, final, src_dir_fd=self.directory, dst_dir_fd=self.directory)
        self.is_draft = False

    def close(self) -> None:
        """Close the file; a draft is removed."""
        if self.is_draft:
            with suppress(OSError):
                os.unlink(self.name, dir_fd=self.directory)
        os.close(self.descriptor)


class Target:
    """An open directory, by its path without links."""

    def __init__(self, path: str, descriptor: int) -> None:
        self.path = path
        self.descriptor = descriptor

    @contextmanager
    def draft(self, final: str) -> Iterator[Draft]:
        """A new file that is removed at the end of the block, unless it was renamed."""
        draft = Draft(self.descriptor, self.path, final)
        try:
            yield draft
        finally:
            draft.close()

    def status(self, name: str) -> os.stat_result | None:
        """The status of a name in the directory, not of what a link leads to; None when there is none."""
        try:
            return os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def is_own_file(self, name: str) -> bool:
        """Whether it is a regular file of the caller's with one name, which nobody else may write."""
        status = self.status(name)
        return (
            status is not None
            and stat.S_ISREG(status.st_mode)
            and status.st_uid == os.geteuid()
            and status.st_nlink == 1
            and not status.st_mode & 0o022
        )

    def names(self) -> list[str]:
        """The names in the directory."""
        return os.listdir(self.descriptor)

    def remove(self, name: str) -> None:
        """Remove a name; one that is gone already is no error."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def sync(self) -> None:
        """Make the names durable."""
        os.fsync(self.descriptor)

    def require_room(self, needed: int, spared: int) -> int:
        """How many bytes fit with `spared` bytes left over; raises StorageFull for less than `needed`."""
        status = os.fstatvfs(self.descriptor)
        room = status.f_bavail * status.f_frsize
        if room < needed + spared:
            raise StorageFull(
                f"not enough room in {self.path}: a new snapshot needs {size(needed)} and {size(spared)} must"
                f" stay free, {size(room)} are free",
                hint=f"df -h {self.path}",
            )
        return room - spared

    def remove_stale_drafts(self, finals: re.Pattern[str]) -> None:
        """Remove what interrupted runs have left of files of these names."""
        for name in self.names():
            match = DRAFT.fullmatch(name)
            if match and finals.fullmatch(match["final"]) and self.is_own_file(name) and self._is_free(name):
                self.remove(name)

    def _is_free(self, name: str) -> bool:
        """Whether the maker of a draft has ended."""
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(name, flags, dir_fd=self.descriptor)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError:
            return False
        finally:
            os.close(descriptor)


@contextmanager
def opened(directory: str, *, instead: str, create: bool = False) -> Iterator[Target]:
    """The directory, for the length of the block; raises FileRefused for one that others can change.

    `instead` is the hint in that case. With `create` a missing one is made, for the caller alone, with
    a parent for everybody.
    """
    try:
        parent = os.path.dirname(directory)
        if create and not os.path.lexists(parent):
            os.mkdir(parent)
            os.chmod(parent, 0o755)  # noqa: S103  of the state directory, which others look into
        path = resolved(directory)
        if create and not os.path.lexists(path):
            os.mkdir(path, 0o700)
        require_own(path)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except UnsafeError as error:
        reason = error.message.replace("; it is left as it is", "")
        reason = re.sub(rf"below {re.escape(directory)} \((.*?)\)", r"\1", reason)
        raise FileRefused(f"{directory} {reason}", hint=instead) from None
    except FileNotFoundError:
        raise FileRefused(
            f"there is no directory {directory}", hint=_creation(directory) or instead
        ) from None
    except OSError as error:
        raise FileRefused(
            f"cannot write to the directory {directory}: {error.strerror}", hint=f"ls -ld {directory}"
        ) from None
    try:
        yield Target(path, descriptor)
    except OSError as error:
        if error.errno in FULL:
            raise StorageFull(f"{path} is full", hint=f"df -h {path}") from None
        raise FileRefused(f"cannot write to {path}: {error.strerror}", hint=f"ls -ld {path}") from None
    finally:
        os.close(descriptor)


def _creation(directory: str) -> str:
    """The command that creates a directory, where only root can change the way to it; else empty."""
    above = directory
    while above != "/":
        above = os.path.dirname(above)
        with suppress(FileNotFoundError):
            status = os.lstat(above)
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
                return ""
    return f"sudo install -d -m 0700 {shlex.quote(directory)}   (or mount the disk that belongs there)"


@contextmanager
def alone(path: str, what: str = "backup") -> Iterator[None]:
    """The lock of backups, for the length of the block; raises OperationInProgress when it is taken.

    `what` the caller does is said then.
    """
    try:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise FileRefused(
            f"{path} cannot be opened: {error.strerror}", hint="sudo svc admin doctor"
        ) from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.pread(descriptor, 20, 0).decode("ascii", "replace").strip()
            pid = f" (pid {holder})" if holder.isdigit() else ""
            raise OperationInProgress(
                f"another backup is running{pid}; this one has not begun"
                if what == "backup"
                else f"a backup or another restore is running{pid}; the {what} has not begun",
                hint="run it again when that has ended",
            ) from None
        with suppress(OSError):  # a full disk: the lock holds without its text
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def size(count: int) -> str:
    """A number of bytes for people: 1.4 GiB."""
    return output.size(count, True)
