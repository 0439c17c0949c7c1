"""A place for bytes that nobody has judged yet: an unnamed file beside the database.

Without a name nobody finds it, and it is gone with the last descriptor, however
the process ends. It lies on the database's disk: what is taken goes there.
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
    """A file (0600) to write into from its beginning, for the length of the block; `ended` cuts it there.

    What `most` bytes leave of the disk must do for the database, which everybody
    writes to. They are taken at once: many files that come at the same time
    would else all count on the same room. Raises StorageFull.
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
    """Let the file end behind what was written last; the room that it did not need is free again."""
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
    """Where this process's database lies."""
    path = database.execute_sql("PRAGMA database_list").fetchone()[2]
    return os.path.dirname(path)
