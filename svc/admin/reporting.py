"""Writing the reports that the app may read (svc/domain/host_reports.py), as root.

The directories of snapshots and recovery sets stay root's alone: a report says what is in them. Whatever goes
wrong here, the command that calls goes on.
"""

from __future__ import annotations

import os

from svc.domain import host_reports
from svc.domain.host_reports import FILE_MODE, FOLDER_MODE, FORMAT, ITEMS_MAX, TEXT_MAX, Kind
from svc.errors import SvcError
from svc.host.ids import now
from svc.host.owner import service_owner
from svc_helper import atomic_file
from svc_helper.wire.quick_json import dumps

TYPE_CHECKING = False  # as typing's own, without its import
if TYPE_CHECKING:
    from typing import Any

    from svc.settings import Settings


def is_reported(settings: Settings) -> bool:
    """Whether a command reports: it does about the service's own database, not about one named with --db."""
    return settings.resolved["SVC_DB"].source != "flag" and settings.is_valid("SVC_STATE_DIR")


def write(settings: Settings, kind: Kind, items: list[dict[str, Any]]) -> bool:
    """Replace a report; False where that is not possible."""
    kept = [
        item for item in (_clipped(item) for item in items[:ITEMS_MAX]) if host_reports.is_item(kind, item)
    ]
    document = {"format": FORMAT, "report": kind.name, "written_at": now(), "items": kept}
    try:
        _ensure_folder(os.path.join(settings.state_dir, host_reports.DIRECTORY))
        atomic_file.replace(
            host_reports.path_of(settings.state_dir, kind), dumps(document).encode(), FILE_MODE
        )
    except OSError:
        return False
    return True


def findings(settings: Settings, records: list[dict[str, Any]]) -> None:
    """Report what the doctor found."""
    if is_reported(settings):
        write(settings, host_reports.HOST, records)


def backups(settings: Settings) -> None:
    """Report the complete snapshots in SVC_BACKUP_DIR, the newest first."""
    from svc.admin.backup import snapshots
    from svc.admin.backup.target import opened
    from svc.db.location import database_path

    if not is_reported(settings):
        return
    items: list[dict[str, Any]] = []
    try:
        with opened(settings.backup_dir, instead="sudo svc admin doctor") as target:
            for _, name in reversed(snapshots.complete(target, database_path(settings))):
                side = snapshots.read_side(target, name) or {}
                beside = target.status(name + snapshots.HOST) is not None
                items.append({**side, "name": name, "host_files": beside})
    except SvcError:
        pass  # the doctor says why; the report is empty
    names = set(host_reports.BACKUPS.item)
    write(settings, host_reports.BACKUPS, [_only(names, item) for item in items])


def recovery_sets(settings: Settings) -> None:
    """Report the recovery sets, the newest first."""
    from svc.admin.backup import recovery_set
    from svc.admin.backup import recovery_sets as sets
    from svc.db.location import database_path

    if not is_reported(settings):
        return
    database = database_path(settings)
    items: list[dict[str, Any]] = []
    if os.path.lexists(recovery_set.path_of(settings, database)):
        try:
            with recovery_set.directory(settings, database, create=False) as top:
                items = sets.every(top, sets.here(database))
        except SvcError:
            pass  # as above
    names = set(host_reports.RECOVERY_SETS.item)
    write(settings, host_reports.RECOVERY_SETS, [_only(names, item) for item in items])


def updates(settings: Settings) -> None:
    """Report the installed release, and what the last check and the last apply found."""
    from svc.admin.release.status import status_of

    if not (is_reported(settings) and settings.is_valid("SVC_UPDATE_SOURCE")):
        return
    try:
        found = status_of(settings)
    except SvcError:
        return  # the doctor says why
    checked, applied, seen = (found[part] or {} for part in ("checked", "applied", "seen"))
    item = {
        "installed_version": found["installed"]["version"], "installed_commit": found["installed"]["commit"],
        "installed_by": found["installed"]["by"], "source": found["source"],
        "release_keys": len(found["keys"]), "checked_at": checked.get("at"),
        "problem": checked.get("problem", ""), "available": found["available"],
        "notes": seen.get("notes", "") if found["available"] else "", "applied_at": applied.get("at"),
        "outcome": applied.get("outcome", ""), "reason": applied.get("reason", ""),
    }  # fmt: skip
    write(settings, host_reports.UPDATES, [item])


def _only(names: set[str], item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name in names}


def _clipped(item: dict[str, Any]) -> dict[str, Any]:
    return {key: _clean(value) if isinstance(value, str) else value for key, value in item.items()}


def _clean(text: str) -> str:
    """The text, bounded; names of files may hold bytes that are not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()[:TEXT_MAX]


def _ensure_folder(path: str) -> None:
    """Create the folder of the reports, which only root writes and the app reads."""
    if os.path.lexists(path):
        return
    owner = service_owner()
    os.mkdir(path, 0o700)
    if os.geteuid() == 0 and owner is not None:
        os.chown(path, 0, owner.gid, follow_symlinks=False)
    os.chmod(path, FOLDER_MODE)
