"""Room on the database's disk that is kept for what gives something back: `<db>.reserve`.

A preallocated file. When the disk is full it is emptied for stops, deletions, logouts,
what the worker records of containers, and their audit rows; everything else is refused
until there is so much room that the worker can make it again. Who is entitled says so
for its thread.
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

from svc.db import faults
from svc.errors import SvcError
from svc.host.sharing import mode_beside

MIB = 1024 * 1024
SIZE = 16 * MIB  # hundreds of stops, also if the log of the database cannot be written back meanwhile
LOW = 1 * MIB  # with less room than this the reserve is given up to those who are entitled
MARGIN = 4 * MIB  # more room than SIZE before it is made again, so that it does not come and go

_thread = threading.local()


def path_of(database: str) -> str:
    """The path of the file."""
    return f"{database}.reserve"


@contextlib.contextmanager
def entitled() -> Iterator[None]:
    """Writes of this thread in the block may use the reserve."""
    _thread.depth = getattr(_thread, "depth", 0) + 1
    try:
        yield
    finally:
        _thread.depth -= 1


def require_room(database: str) -> None:
    """Before a transaction: give the reserve up, or raise StorageFull, when the disk is full.

    Others than those who are entitled are refused from the moment that it has been given
    up. While it is there nothing is refused here: SQLite says when there is no room.
    """
    whole = is_whole(database)
    if getattr(_thread, "depth", 0):
        if whole and room(database) < LOW:
            give_up(database)
    elif not whole and room(database) < SIZE + LOW:
        raise faults.full()


def is_whole(database: str) -> bool:
    """Whether the reserve is there."""
    try:
        return os.stat(path_of(database), follow_symlinks=False).st_size >= SIZE
    except OSError:
        return False


def is_full(database: str) -> bool:
    """Whether the disk is full, or was and the reserve is not there yet."""
    try:
        return room(database) < (LOW if is_whole(database) else SIZE + LOW)
    except SvcError:
        return False


def room(database: str) -> int:
    """Bytes that this process may still write to the database's disk; raises StorageFailed."""
    try:
        status = os.statvfs(os.path.dirname(database) or ".")
    except OSError as error:
        raise faults.failed(error.strerror or str(error)) from None
    return status.f_bavail * status.f_frsize


def give_up(database: str) -> None:
    """Empty the reserve; its room is free at once."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path_of(database), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.ftruncate(descriptor, 0)
        finally:
            os.close(descriptor)


def make(database: str) -> bool:
    """Make the reserve, if it is not there and there is room for more than it; True when it was made."""
    if is_whole(database) or room(database) < SIZE + MARGIN:
        return False
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(path_of(database), flags, mode := mode_beside(database))
        try:
            with contextlib.suppress(
                PermissionError
            ):  # another process of the service made it, with this mode
                os.fchmod(descriptor, mode)
            os.posix_fallocate(descriptor, 0, SIZE)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        give_up(database)  # what was allocated before there was no more room
        return False
    return True


def probe(database: str) -> None:
    """Write to the disk and wait for it; raises StorageFailed. Needs no room: it writes into the reserve."""
    try:
        descriptor = os.open(path_of(database), os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        raise faults.failed(f"{path_of(database)}: {error.strerror}") from None
    try:
        if os.fstat(descriptor).st_size >= SIZE:
            os.pwrite(descriptor, b"\0", 0)
            os.fdatasync(descriptor)
    except OSError as error:
        raise faults.failed(f"{path_of(database)}: {error.strerror}") from None
    finally:
        os.close(descriptor)
