"""Recovery sets: what was before a change, each a directory of root's in SVC_RECOVERY_DIR.

    upgrade-20261122T164523.123Z/svc.deb           the program, where svc is installed as a package
    upgrade-20261122T164523.123Z/svc.db            the database, a snapshot as `svc admin backup` makes it
    upgrade-20261122T164523.123Z/svc.db.json       its side file; svc.db.host.tar, the small files
    upgrade-20261122T164523.123Z/manifest.json     when, why, versions, the digest of each file

`restore-*` is what a restore replaced, `migrate-*` what was before a migration: both without a program. A
damaged database that is restored over is kept as it is: `damaged.db` and `damaged.db-wal`. A set
has its name only when it is complete.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from svc.admin.backup import package, snapshot, snapshot_check
from svc.admin.backup.target import Target, opened
from svc.db.migrate import latest
from svc.errors import DatabaseDamaged, DatabaseRefused, FileRefused, SvcError
from svc.host.ids import now
from svc.settings import Settings
from svc.version import commit

FORMAT = 1
MANIFEST = "manifest.json"
RESTORE, UPGRADE, MIGRATE = "restore", "upgrade", "migrate"
NAME = re.compile(rf"(?P<kind>{RESTORE}|{UPGRADE}|{MIGRATE})-\d{{8}}T\d{{6}}\.\d{{3}}Z")
PARTIAL = re.compile(rf"\.{NAME.pattern}\.partial")
DATABASE, DAMAGED, PROGRAM = "svc.db", "damaged.db", "svc.deb"
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
INSTEAD = "choose a directory where only root can write: SVC_RECOVERY_DIR in /etc/svc/svc.env"


def path_of(settings: Settings, database: str) -> str:
    """The directory of the sets; an ordinary user's is beside the database."""
    return settings.recovery_dir if os.geteuid() == 0 else f"{database}.recovery"


@contextmanager
def directory(settings: Settings, database: str, *, create: bool = True) -> Iterator[Target]:
    """The same, opened; raises FileRefused. Only the default one is created."""
    may_create = os.geteuid() != 0 or settings.resolved["SVC_RECOVERY_DIR"].source == "default"
    with opened(path_of(settings, database), instead=INSTEAD, create=create and may_create) as top:
        yield top


def require_directory(settings: Settings, database: str) -> None:
    """Raise FileRefused unless sets can be kept, before a command has asked or stopped anything."""
    with directory(settings, database):
        pass


def keep(
    source: snapshot.Source,
    top: Target,
    why: dict[str, Any],
    *,
    kind: str = RESTORE,
    program: package.Installed | None = None,
    before_database: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Keep the present state as a set; returns {"id", "path", "raw", "database"}. Nothing is changed.

    `before_database` is called when the program is kept and the database is not yet: what takes
    long is done while the service still runs. Raises StorageFull, FileRefused, DatabaseDamaged.
    """
    remove_stale(top)
    name = _new_name(top, kind)
    partial = f".{name}.partial"
    with _created(top, partial) as target:
        described = _program(program, target) if program else {}
        before_database()
        kept = _database(source, target, or_raw=kind == RESTORE)
        manifest = {
            "format": FORMAT, "id": name, "created_at": now(), "commit": commit(),
            "database": source.database, **why, **kept, **described,
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
        shutil.rmtree(name, dir_fd=top.descriptor)


def remove(top: Target, name: str) -> None:
    """Remove a set; what an interruption leaves of it has a set's name no more."""
    partial = f".{name}.partial"
    os.rename(name, partial, src_dir_fd=top.descriptor, dst_dir_fd=top.descriptor)
    top.sync()
    shutil.rmtree(partial, dir_fd=top.descriptor)


def _program(program: package.Installed, target: Target) -> dict[str, Any]:
    """The program as a .deb."""
    package.rebuild(target.path, PROGRAM)
    return {"program": {"file": PROGRAM, **program._asdict(), "schema": latest()}}


def _database(source: snapshot.Source, target: Target, *, or_raw: bool) -> dict[str, Any]:
    """The database as a checked snapshot, or its files as they are where that cannot be had."""
    try:
        record = snapshot.write(source, target, DATABASE)
    except SvcError as error:
        if not or_raw or not isinstance(error, DatabaseDamaged | DatabaseRefused | FileRefused):
            error.hint = error.hint.replace(
                target.path, os.path.dirname(target.path)
            )  # the set does not stay
            raise
        snapshot.write_raw(source, target, DAMAGED, held=True)
        return {"holds": DAMAGED, "raw": True, "damage": error.message}
    return {"holds": DATABASE, "raw": False, "schema": record["schema"], "sha256": record["sha256"]}


def _new_name(top: Target, kind: str) -> str:
    """A name for now that is free."""
    moment = datetime.now(UTC)
    while True:
        name = f"{kind}-{moment.strftime('%Y%m%dT%H%M%S.')}{moment.microsecond // 1000:03}Z"
        if top.status(name) is None:
            return name
        moment += timedelta(milliseconds=1)


@contextmanager
def _created(top: Target, name: str) -> Iterator[Target]:
    """A new directory; after an error it is removed."""
    os.mkdir(name, 0o700, dir_fd=top.descriptor)
    try:
        with opened_set(top, name) as target:
            yield target
    except BaseException:  # whatever ends it, no part of a set stays
        remove_stale(top)
        raise


@contextmanager
def opened_set(top: Target, name: str) -> Iterator[Target]:
    """The directory of a set; raises OSError for what is no directory."""
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
        return {"name": name, "size_bytes": size, "sha256": snapshot_check.sha256_of(descriptor)}
    finally:
        os.close(descriptor)
