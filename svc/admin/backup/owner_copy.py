"""What the database's owner does for a backup: find its size, copy it, copy damaged files as they are.

Each function is for a process of the owner (svc.host.owner.run_as) and writes into a descriptor that root
has opened. SQLite's backup in one step (`pages=-1`) sees one state of the database while others
write; in several steps it would begin again after each write, and never end.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import sqlite3
import stat
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from svc.admin.backup.sqlite_descriptor import as_path, end_with
from svc.db import faults, reserve
from svc.db.connect import check_file
from svc.db.lock import hold
from svc.errors import DatabaseDamaged, DatabaseRefused, Maintenance, StorageFailed, StorageFull, SvcError
from svc.host.owner import admin_command

BUSY_S = 30.0  # for a lock on the database; a writer in WAL mode never blocks a reader
PART = 1024 * 1024
SECTOR = 4096  # what is left out around a place that cannot be read
VERSIONS_AT, ROLLBACK_JOURNAL = 18, b"\1\1"  # in the file's header: the formats of writing and reading
MAGIC = b"SQLite format 3\0"


def size_of(database: str, parent: int) -> dict[str, Any]:
    """How many bytes a copy has: {"bytes"}; raises DatabaseDamaged, DatabaseRefused."""
    end_with(parent)
    with _faults_of_the_source():
        connection = opened(database)
        pages, page_bytes = (
            int(connection.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "page_size")
        )
        close_unwritten(connection, database)
    if not pages:
        raise DatabaseRefused(f"{database} is empty", hint=admin_command("migrate", database))
    return {"bytes": pages * page_bytes}


def copy(database: str, descriptor: int, most: int, parent: int) -> dict[str, Any]:
    """Copy the database into an empty file, as one file in rollback-journal mode, of at most `most` bytes.

    Raises DatabaseDamaged, Maintenance, StorageFull, StorageFailed.
    """
    end_with(parent)
    if os.getpid() != parent:  # the kernel's limit holds whatever the database's content makes of SQLite
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
    with as_path(descriptor) as path, _faults_of_the_source():
        source = opened(database)
        target = sqlite3.connect(f"file:{path}?mode=rw&nolock=1", uri=True, isolation_level=None)
        try:
            for pragma in ("journal_mode = OFF", "synchronous = OFF"):  # root syncs it; a part is never used
                target.execute(f"PRAGMA {pragma}")
            source.backup(target, pages=-1, progress=_patience(), sleep=0.1)
        except sqlite3.OperationalError as error:
            at_limit = os.fstat(descriptor).st_size + PART > most
            if at_limit and error.sqlite_errorcode == sqlite3.SQLITE_IOERR_WRITE:
                raise StorageFull("the database grew while it was copied: there is no room for it") from None
            raise
        finally:
            target.close()
        close_unwritten(source, database)
    if os.pread(descriptor, len(MAGIC), 0) != MAGIC:
        raise StorageFailed("the copy of the database has no header")
    os.pwrite(descriptor, ROLLBACK_JOURNAL, VERSIONS_AT)
    return {}


def copy_raw(database: str, main: int, log: int, parent: int, *, held: bool = False) -> dict[str, Any]:
    """Copy the files of a database as they are, what cannot be read as zeros: {"unreadable_bytes"}.

    Never through SQLite. The service must be stopped: raises DatabaseRefused otherwise, unless the
    caller has the database's lock already (`held`).
    """
    end_with(parent)
    check_file(database)
    with contextlib.nullcontext() if held else hold(database, holder="svc admin backup"):
        lost = _copy_file(database, main)
        if os.path.lexists(f"{database}-wal"):
            check_file(f"{database}-wal")
            lost += _copy_file(f"{database}-wal", log)
    return {"unreadable_bytes": lost}


def opened(database: str) -> sqlite3.Connection:
    """A connection that reads; of any schema. A full disk's reserve is given up if that is what it takes."""
    check_file(database)
    try:
        return _connected(database)
    except sqlite3.OperationalError as error:
        if not isinstance(faults.error_of(error), StorageFull):
            raise
    reserve.give_up(database)
    return _connected(database)


def _connected(database: str) -> sqlite3.Connection:
    address = f"file:{quote(os.path.abspath(database))}?mode=rw"  # readers write into the log's index
    connection = sqlite3.connect(address, uri=True, timeout=BUSY_S, isolation_level=None)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA schema_version").fetchone()  # the first that reads the file
    return connection


def close_unwritten(connection: sqlite3.Connection, database: str) -> None:
    """Close it, unless that would write the log back into the file: nobody has checked them yet."""
    with contextlib.suppress(OSError):
        if os.stat(f"{database}-wal", follow_symlinks=False).st_size:
            return
    connection.close()


def _patience() -> Callable[[int, int, int], None]:
    """A function for `progress` that raises Maintenance when the database was locked for BUSY_S."""
    deadline = time.monotonic() + BUSY_S

    def progress(status: int, _remaining: int, _total: int) -> None:
        if status in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED) and time.monotonic() > deadline:
            raise Maintenance(f"the database was locked by another program for {BUSY_S:.0f} s")

    return progress


class _faults_of_the_source(contextlib.AbstractContextManager[None]):  # noqa: N801  used like a function
    """Raise SQLite's errors in the block as errors of ours."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.Error):
            raise _error_of(error) from None


def _error_of(error: sqlite3.Error) -> SvcError:
    found = faults.error_of(error, busy=True)
    if isinstance(found, DatabaseDamaged):
        return DatabaseDamaged(str(error))
    if isinstance(found, StorageFull):
        return StorageFull("the disk became full while the database was copied")
    if isinstance(found, StorageFailed):
        return StorageFailed(f"the database could not be copied: {error} ({error.sqlite_errorname})")
    return found or DatabaseRefused(f"the database could not be copied: {error}")


def _copy_file(path: str, target: int) -> int:
    """Copy a file; returns the number of bytes that could not be read and are zeros in the copy."""
    source = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(source)
        if not stat.S_ISREG(status.st_mode):
            raise DatabaseRefused(f"{path} is not a regular file")
        at = lost = 0
        while at < status.st_size:
            part, missed = _read(source, at, min(PART, status.st_size - at))
            if not part:
                break
            _write(target, part, at)
            at += len(part)
            lost += missed
        return lost
    finally:
        os.close(source)


def _read(source: int, at: int, size: int) -> tuple[bytes, int]:
    """Bytes of a file and how many of them could not be read; a failing part is read in sectors."""
    try:
        return os.pread(source, size, at), 0
    except OSError as error:
        if error.errno != errno.EIO:
            raise StorageFailed(f"the database cannot be read: {error.strerror}") from None
    if size > SECTOR:
        parts = [
            _read(source, place, min(SECTOR, at + size - place)) for place in range(at, at + size, SECTOR)
        ]
        return b"".join(part for part, _ in parts), sum(lost for _, lost in parts)
    return bytes(size), size


def _write(target: int, part: bytes, at: int) -> None:
    try:
        while part:
            written = os.pwrite(target, part, at)
            part, at = part[written:], at + written
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageFull("the disk became full while the database was copied") from None
        raise StorageFailed(f"the copy cannot be written: {error.strerror}") from None
