"""The lock of the database, `<db>.lock`: for one server, or one command that replaces or rebuilds the file.

"The supervisor holds the database's lock exclusively for as long as it runs";
restore, rollback, checkpoint and a migrate with pending migrations take it too.
Standard library only, since the supervisor imports it as root.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager

from svc.errors import DatabaseRefused
from svc.host.owner import repair_command
from svc.service_commands import stop_command

AGAIN = "run it again when that has ended"
HOLDER = re.compile(rb"([a-z -]{1,40}) \(pid (\d{1,10})\)\n?")
RETRY_S = 5  # whoever holds it may be done by then


def lock_path(path: str) -> str:
    """The path of the lock of the database at path."""
    return os.path.abspath(path) + ".lock"


@contextmanager
def hold(path: str, *, exclusive: bool = True, holder: str = "svc server") -> Iterator[None]:
    """Hold the lock for the duration of the block; DatabaseRefused at once when it is taken.

    The descriptor is close-on-exec, but a forked process would keep the lock.
    """
    descriptor = _open(lock_path(path))
    try:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
        except BlockingIOError:
            whom = _by_whom(descriptor)
            is_command = bool(whom) and not whom.startswith(" by svc server")
            raise DatabaseRefused(
                f"{path} is in use{whom}",
                hint=AGAIN if is_command else _stop(),
                retry_after_s=RETRY_S,
            ) from None
        with contextlib.suppress(OSError):  # a full or failing disk: the lock holds without its text
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"{holder} (pid {os.getpid()})\n".encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _stop() -> str:
    """How the service is stopped; without systemd the message names its process, which others could forge."""
    command = stop_command()
    return f"stop the service first: {command}" if command.startswith("sudo ") else command


def _open(path: str) -> int:
    """Open or create the lock file: never through a link, and owned by the owner of its directory."""
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        try:
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o600)
            if os.geteuid() == 0:
                home = os.stat(os.path.dirname(path))
                os.fchown(descriptor, home.st_uid, home.st_gid)
        except FileExistsError:
            descriptor = os.open(path, flags)
    except OSError as error:
        why = "is a symbolic link" if error.errno == errno.ELOOP else f"cannot be opened: {error.strerror}"
        raise DatabaseRefused(f"{path} {why}", hint=repair_command(path.removesuffix(".lock"))) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:  # root writes into it, whoever linked it
        os.close(descriptor)
        what = f"has {status.st_nlink} names (hard links)" if status.st_nlink > 1 else "is not a regular file"
        raise DatabaseRefused(f"{path} {what}", hint=repair_command(path.removesuffix(".lock")))
    return descriptor


def _by_whom(descriptor: int) -> str:
    match = HOLDER.fullmatch(os.pread(descriptor, 80, 0))
    return f" by {match[1].decode()} (pid {match[2].decode()})" if match else ""
