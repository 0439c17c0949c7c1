"""Writing one snapshot: copy, check, side file, archive of small files; the name comes last."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import stat
from functools import partial
from typing import Any, NamedTuple

from svc.admin.backup import host_files, owner_copy, snapshot_check
from svc.admin.backup.snapshots import FORMAT, HOST, SIDE
from svc.admin.backup.target import Draft, Target
from svc.admin.command import require_owner
from svc.db import migrate, reserve
from svc.db.faults import DOCTOR
from svc.db.location import database_path
from svc.errors import DatabaseDamaged, FileRefused, StorageFailed, StorageFull, SvcError
from svc.host.ids import now
from svc.host.owner import Owner, admin_command, owner_of, run_as
from svc.settings import Settings
from svc.version import commit

COPY_S = 86400.0  # of a large database to a slow disk
SMALL_FILES = 1024 * 1024  # room for what is beside a snapshot
SPARED = 1024 * 1024  # must stay free on the disk of the backups
SPARED_FOR_SERVICE = reserve.SIZE + reserve.MARGIN  # and on the database's own, or its writes would stop
LOGS = ("-wal", "-shm", "-journal")  # of SQLite: beside a snapshot they would be applied to it


class Source(NamedTuple):
    """The database, the account that it belongs to, the lock of its backups."""

    database: str
    owner: Owner
    lock: str
    settings: Settings


def source_of(settings: Settings) -> Source:
    """The database that is backed up."""
    database = database_path(settings)
    require_owner(database)
    lock = os.path.join(settings.state_dir, "backup.lock") if os.geteuid() == 0 else f"{database}.backup-lock"
    return Source(database, owner_of(database), lock, settings)


def write(
    source: Source, target: Target, name: str, *, number: int = 0, with_secrets: bool = False
) -> dict[str, Any]:
    """Write a snapshot and what is beside it; returns its record. Replaces files of these names.

    Raises DatabaseDamaged, StorageFull, FileRefused, OperationInProgress.
    """
    try:
        room = target.require_room(_size_of(source) + SMALL_FILES, _spared(source, target))
        with target.draft(name) as draft:
            most = room - SMALL_FILES
            copy = partial(owner_copy.copy, source.database, draft.descriptor, most, os.getpid())
            run_as(source.owner, copy, COPY_S)
            draft.seal()
            check = check_of(draft.descriptor, source.owner)
            if check.fault or check.foreign:
                raise DatabaseDamaged(check.fault or check.foreign)
            if not check.schema and check.refused:  # wrong --db
                raise FileRefused(
                    f"{source.database} was not backed up: {check.refused}", hint="svc admin db-path"
                )
            side = _side(source, draft, check) | {"name": name, "number": number}
            small = host_files.collect(source.settings, source.owner, with_secrets=with_secrets)
            _publish(target, name, draft, side, small)
    except DatabaseDamaged as error:
        raise _damaged(source, target, error) from None
    except (StorageFull, StorageFailed) as error:
        raise _of_disk(target, error) from None
    path = os.path.join(target.path, name)
    return side | {"path": path, "host_files": _listed(small)}


def write_raw(source: Source, target: Target, name: str, *, held: bool = False) -> dict[str, Any]:
    """Copy the files of a damaged database as they are, unchecked: the file and, if there is one, its log.

    With `held` the caller has the database's lock.
    """
    log = f"{source.database}-wal"
    sizes = [os.lstat(path).st_size for path in (source.database, log) if os.path.lexists(path)]
    target.require_room(sum(sizes), _spared(source, target))
    with target.draft(name) as main, target.draft(name + LOGS[0]) as wal:
        files = source.database, main.descriptor, wal.descriptor
        work = partial(owner_copy.copy_raw, *files, os.getpid(), held=held)
        untrusted = run_as(source.owner, work, COPY_S)
        main.seal()
        wal.seal()
        lost = _whole(untrusted, "unreadable_bytes")
        _remove_beside(target, name)
        main.rename(name)
        if os.fstat(wal.descriptor).st_size:
            wal.rename(name + LOGS[0])
        target.sync()
        size = os.fstat(main.descriptor).st_size
    path = os.path.join(target.path, name)
    return {"path": path, "raw": True, "size_bytes": size, "unreadable_bytes": lost, "created_at": now()}


def require_free(source: Source, target: Target, name: str, *, force: bool, again: str) -> None:
    """Raise FileRefused unless the names may be used: free, or with `force` regular files."""
    data, own = os.path.split(os.path.realpath(source.database))
    if os.path.realpath(target.path) == data and name.startswith(own):
        raise FileRefused(
            "a snapshot is not written over the database's own files", hint="choose another name"
        )
    for suffix in ("", SIDE, HOST, *LOGS):
        status, path = target.status(name + suffix), os.path.join(target.path, name + suffix)
        if status is None:
            continue
        if not stat.S_ISREG(status.st_mode):
            kind = "a symbolic link" if stat.S_ISLNK(status.st_mode) else "not a regular file"
            raise FileRefused(f"{path} is {kind}", hint="choose another name")
        if not force:
            why = ": SQLite would apply it to the snapshot" if suffix in LOGS else ""
            raise FileRefused(f"{path} already exists{why}", hint=again)


def check_of(descriptor: int, reader: Owner) -> snapshot_check.Check:
    """The check of a file, by a process of that account."""
    work = partial(snapshot_check.check, descriptor, migrate.known(), os.getpid())
    return snapshot_check.checked(run_as(reader, work, COPY_S))


def _size_of(source: Source) -> int:
    return _whole(run_as(source.owner, partial(owner_copy.size_of, source.database, os.getpid())), "bytes")


def _whole(untrusted: Any, key: str) -> int:
    """A number of the other process's result; raises SvcError."""
    number = untrusted.get(key) if isinstance(untrusted, dict) else None
    if type(number) is not int or not 0 <= number < 2**63:
        raise SvcError("copying the database returned no usable result")
    return number


def _spared(source: Source, target: Target) -> int:
    same = os.stat(os.path.dirname(source.database)).st_dev == os.fstat(target.descriptor).st_dev
    return SPARED_FOR_SERVICE if same else SPARED


def _side(source: Source, draft: Draft, check: snapshot_check.Check) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "created_at": now(),
        "host": socket.gethostname(),
        "database": source.database,
        "raw": False,
        "size_bytes": os.fstat(draft.descriptor).st_size,
        "sha256": check.sha256,
        "schema": check.schema,
        "refused": check.refused,
        "commit": commit(),
        "sqlite_version": sqlite3.sqlite_version,
        "rows": check.rows,
    }


def _listed(small: host_files.HostFiles) -> dict[str, Any]:
    return {"holds": small.holds, "left_out": small.left_out}


def _publish(
    target: Target, name: str, draft: Draft, side: dict[str, Any], small: host_files.HostFiles
) -> None:
    """Give the files their names, the snapshot's last: a file of its name is complete.

    Over an older snapshot its own side files go first, since they would not fit.
    """
    with target.draft(name + HOST) as archive, target.draft(name + SIDE) as record:
        archive.write(small.archive)
        archive.seal()
        digest = {"sha256": snapshot_check.sha256_of(archive.descriptor)}
        text = json.dumps(side | {"host_files": digest | _listed(small)}, indent=1)
        record.write(text.encode() + b"\n")
        record.seal()
        _remove_beside(target, name)
        record.rename(name + SIDE)
        archive.rename(name + HOST)
        draft.rename(name)
        target.sync()


def _remove_beside(target: Target, name: str) -> None:
    """Remove what lies beside an older file of this name, which is replaced."""
    for suffix in (SIDE, HOST, *LOGS):
        target.remove(name + suffix)


def _of_disk(target: Target, error: SvcError) -> SvcError:
    """The error with its hint: the process that copies does not know the directory."""
    full = f"df -h {target.path}"
    return type(error)(error.message, hint=error.hint or (full if isinstance(error, StorageFull) else DOCTOR))


def _damaged(source: Source, target: Target, error: DatabaseDamaged) -> DatabaseDamaged:
    """The error with its way out: the files as they are."""
    out = os.path.join(target.path, f"damaged-{now()[:10]}.db")
    command = admin_command(f"backup --raw --out {out}", source.database)
    return DatabaseDamaged(
        f"the database is damaged, and no snapshot was made: {error.message};"
        " its files can be copied as they are",
        hint=f"stop the service, then: {command}",
    )
