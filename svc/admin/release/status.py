"""The installed release, and what the last check and the last apply found."""

from __future__ import annotations

from typing import Any

from svc.admin import reporting
from svc.admin.release import record
from svc.admin.release.installation import Installed, compare, installed
from svc.build_keys import release_keys
from svc.domain import host_reports
from svc.domain.licence.documents import key_id
from svc.errors import SvcError
from svc.settings import Settings


def status_of(settings: Settings) -> dict[str, Any]:
    """The record that `update status --json` prints."""
    here, found = installed(), record.read(settings.state_dir)
    return {
        "installed": here._asdict(),
        "keys": [key_id(key) for key in release_keys()],
        "source": settings.update_source,
        "available": available(found["seen"], here),
        **found,
    }


def report(settings: Settings) -> None:
    """Report the installed release, and what the last check and the last apply found."""
    if not (reporting.is_reported(settings) and settings.is_valid("SVC_UPDATE_SOURCE")):
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
    reporting.write(settings, host_reports.UPDATES, [item])


def available(seen: dict[str, Any] | None, here: Installed) -> str:
    """The version that was seen and is not installed; empty without one."""
    if seen is None or seen["commit"] == here.commit:
        return ""
    newer = not here.version or compare(seen["version"], "gt", here.version)
    return str(seen["version"]) if newer else ""
