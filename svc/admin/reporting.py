"""Writing the reports that the app may read (svc/domain/host_reports.py), as root.

The directories of snapshots and recovery sets stay root's alone: a report says what is in them. Each is made
beside its subject (`report` of backup/snapshots.py, ...). Whatever goes wrong here, the command goes on.
"""

from __future__ import annotations

import os
from typing import Any

from svc.domain import host_reports
from svc.domain.host_reports import FILE_MODE, FOLDER_MODE, FORMAT, ITEMS_MAX, TEXT_MAX, Kind
from svc.host.ids import now
from svc.host.owner import service_owner
from svc.settings import Settings
from svc_helper import atomic_file
from svc_helper.wire.quick_json import dumps


def is_reported(settings: Settings) -> bool:
    """Whether a command reports: it does about the service's own database, not about one named with --db."""
    return settings.resolved["SVC_DB"].source != "flag" and settings.is_valid("SVC_STATE_DIR")


def write(settings: Settings, kind: Kind, items: list[dict[str, Any]]) -> bool:
    """Replace a report, of each item what its kind has; False where that is not possible."""
    kept = [
        item
        for item in (_clipped(kind, item) for item in items[:ITEMS_MAX])
        if host_reports.is_item(kind, item)
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


def _clipped(kind: Kind, item: dict[str, Any]) -> dict[str, Any]:
    """What the report has of the item."""
    known = {name: value for name, value in item.items() if name in kind.item}
    return {name: _clean(value) if isinstance(value, str) else value for name, value in known.items()}


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
