"""The installed release, and what the last check and the last apply found."""

from __future__ import annotations

from typing import Any

from svc.admin.release import record
from svc.admin.release.installation import Installed, compare, installed
from svc.build_keys import release_keys
from svc.domain.licence.documents import key_id
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


def available(seen: dict[str, Any] | None, here: Installed) -> str:
    """The version that was seen and is not installed; empty without one."""
    if seen is None or seen["commit"] == here.commit:
        return ""
    newer = not here.version or compare(seen["version"], "gt", here.version)
    return str(seen["version"]) if newer else ""
