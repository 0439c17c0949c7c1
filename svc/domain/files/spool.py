"""Temporary storage for unchecked request bodies: an unnamed file beside the database.

No other process can open it, and it disappears with its last descriptor, however the
process ends. It is on the database's disk, where accepted contents go too.
"""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from svc.db.connect import database
from svc.errors import StorageFull
from svc.limits import BUNDLE_MAX, DISK_RESERVE

_MIB = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)


@contextmanager
def unnamed_file(most: int = BUNDLE_MAX) -> Iterator[BinaryIO]:
    """An empty file (0600) of at most `most` bytes, for the length of the block; see ended().

    The space is allocated at once, since concurrent uploads would otherwise all count
    on the same space, and the database must keep its reserve. Raises StorageFull.
    """
    directory = _directory()
    _require_free(directory, most)
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            os.posix_fallocate(file.fileno(), 0, max(1, most))
            _require_free(directory, 0)
            yield file
    except OSError as error:
        if error.errno not in _FULL:
            raise
        raise StorageFull("the disk that holds the database is full") from error


def ended(file: BinaryIO) -> None:
    """Truncate the file at the current position, which frees the space it did not use."""
    file.truncate()


def _require_free(directory: str, size: int) -> None:
    status = os.statvfs(directory)
    free = status.f_bavail * status.f_frsize
    if free < size + DISK_RESERVE:
        raise StorageFull(
            f"the disk that holds the database has only {free // _MIB} MiB free, of which"
            f" {DISK_RESERVE // _MIB} MiB are kept for the database itself",
            details={"needed_bytes": size + DISK_RESERVE, "free_bytes": free},
        )


def _directory() -> str:
    """The directory of this process's database."""
    path: str = database.execute_sql("PRAGMA database_list").fetchone()[2]
    return os.path.dirname(path)
