"""Doctor check of the backups: how old the newest snapshot of this database is."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from svc.admin.backup.snapshots import complete
from svc.admin.backup.target import opened
from svc.admin.findings import Finding, Host, ok, warn
from svc.errors import FileRefused
from svc.host.owner import admin_command
from svc.settings import ENV_FILE

CODE = "backups"
HOUR_S = 3600
OLD_S = 48 * HOUR_S  # two nights: one of a nightly backup's runs has failed
KEPT = 14  # snapshots at least, in the remedy


def backups(host: Host) -> Iterator[Finding]:
    """The age of the newest complete snapshot in SVC_BACKUP_DIR, whose way only root may change."""
    directory = host.settings.backup_dir
    if os.geteuid() != 0 and not os.access(directory, os.R_OK | os.X_OK):
        return
    is_default = host.settings.resolved["SVC_DB"].source == ENV_FILE
    remedy = _remedy(KEPT, "" if is_default else host.database)
    if not os.path.lexists(directory):
        is_created = host.settings.resolved["SVC_BACKUP_DIR"].source == "default"  # by the first backup
        edit = f"sudo editor {ENV_FILE}   (SVC_BACKUP_DIR: a directory that is there)"
        yield warn(CODE, f"there is none: {directory} is missing", remedy if is_created else edit)
        return
    other = f"set SVC_BACKUP_DIR in {ENV_FILE} to a directory where only root can write"
    try:
        with opened(directory, instead=other) as target:
            found = complete(target, host.database)
            status = target.status(found[-1].name) if found else None
    except FileRefused as error:
        yield warn(CODE, error.message, error.hint)
        return
    if status is None:
        yield warn(CODE, f"there is none of {host.database} in {directory}", remedy)
        return
    age = max(0.0, time.time() - status.st_mtime)
    newest = f"the newest of {len(found)} in {directory} is {_age(age)} old"
    remedy = _remedy(max(KEPT, len(found) + 1), "" if is_default else host.database)
    yield warn(CODE, newest, remedy) if age > OLD_S else ok(CODE, newest)


def _remedy(kept: int, database: str) -> str:
    """The command for one more snapshot; it must not remove those that the administrator keeps."""
    return admin_command(f"backup --retention {kept}", database)


def _age(age_s: float) -> str:
    hours = int(age_s // HOUR_S)
    if hours < 1:
        return "less than an hour"
    number, unit = (hours, "hour") if hours < 48 else (hours // 24, "day")
    return f"{number} {unit}{'' if number == 1 else 's'}"
