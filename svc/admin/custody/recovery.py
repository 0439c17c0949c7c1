"""Recovery sets: what a restore replaced, each a directory of root's in SVC_RECOVERY_DIR.

    restore-20261122T164523.123Z/svc.db            the database, a snapshot as `svc admin backup` makes it
    restore-20261122T164523.123Z/svc.db.json       its side file; svc.db.host.tar, the small files
    restore-20261122T164523.123Z/manifest.json     when, why, versions, the digest of each file

A damaged database is kept as it is: `damaged.db` and `damaged.db-wal`. A set has its name only when it
is complete.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from svc.admin.custody import checking, writing
from svc.admin.custody.target import Target
from svc.db.ids import now
from svc.errors import DatabaseDamaged, DatabaseRefused, FileRefused
from svc.version import commit

FORMAT = 1
MANIFEST = "manifest.json"
PARTIAL = re.compile(r"\.restore-\d{8}T\d{6}\.\d{3}Z\.partial")
DATABASE, DAMAGED = "svc.db", "damaged.db"
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def keep(source: writing.Source, top: Target, why: dict[str, Any]) -> dict[str, Any]:
    """Keep the present database as a set; returns {"id", "path", "database"}. The caller has its lock.

    Raises StorageFull, FileRefused. Nothing of the database is changed.
    """
    remove_stale(top)
    name = _new_name(top)
    partial = f".{name}.partial"
    with _created(top, partial) as target:
        kept = _database(source, target)
        manifest = {
            "format": FORMAT, "id": name, "created_at": now(), "commit": commit(),
            "database": source.database, **why, **kept,
            "files": [_file(target, each) for each in sorted(target.names())],
        }  # fmt: skip
        with target.draft(MANIFEST) as draft:
            draft.write(json.dumps(manifest, indent=1).encode() + b"\n")
            draft.seal()
            draft.rename(MANIFEST)
        target.sync()
    os.rename(partial, name, src_dir_fd=top.descriptor, dst_dir_fd=top.descriptor)
    top.sync()
    path = os.path.join(top.path, name)
    return {"id": name, "path": path, "raw": kept["raw"], "database": os.path.join(path, kept["holds"])}


def remove_stale(top: Target) -> None:
    """Remove what interrupted runs have left; the caller has the lock of backups."""
    for name in filter(PARTIAL.fullmatch, top.names()):
        with _opened(top, name) as target:
            for each in target.names():
                target.remove(each)
        os.rmdir(name, dir_fd=top.descriptor)


def _database(source: writing.Source, target: Target) -> dict[str, Any]:
    """The database as a checked snapshot, or its files as they are where that cannot be had."""
    try:
        record = writing.write(source, target, DATABASE)
    except (DatabaseDamaged, DatabaseRefused, FileRefused) as error:
        writing.write_raw(source, target, DAMAGED, held=True)
        return {"holds": DAMAGED, "raw": True, "damage": error.message}
    return {"holds": DATABASE, "raw": False, "schema": record["schema"], "sha256": record["sha256"]}


def _new_name(top: Target) -> str:
    moment = datetime.now(UTC)
    stamp = moment.strftime("%Y%m%dT%H%M%S.") + f"{moment.microsecond // 1000:03}Z"
    name = f"restore-{stamp}"
    if top.status(name) is not None:
        raise FileRefused(f"{os.path.join(top.path, name)} already exists", hint="run it again")
    return name


@contextmanager
def _created(top: Target, name: str) -> Iterator[Target]:
    """A new directory; after an error it is removed."""
    os.mkdir(name, 0o700, dir_fd=top.descriptor)
    try:
        with _opened(top, name) as target:
            yield target
    except BaseException:  # whatever ends it, no part of a set stays
        remove_stale(top)
        raise


@contextmanager
def _opened(top: Target, name: str) -> Iterator[Target]:
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, dir_fd=top.descriptor)
    try:
        yield Target(os.path.join(top.path, name), descriptor)
    finally:
        os.close(descriptor)


def _file(target: Target, name: str) -> dict[str, Any]:
    descriptor = os.open(name, READ, dir_fd=target.descriptor)
    try:
        size = os.fstat(descriptor).st_size
        return {"name": name, "size_bytes": size, "sha256": checking.sha256_of(descriptor)}
    finally:
        os.close(descriptor)
