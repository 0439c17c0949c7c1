"""`svc admin update apply`: download, rehearse, switch; what happened is recorded.

The switch replaces the files of this program. All that runs afterwards is imported here, at the top.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from svc.actions.table import ADMIN_UPDATE_APPLY
from svc.admin.actor import note
from svc.admin.backup.snapshot import source_of
from svc.admin.database import as_owner
from svc.admin.release import folder, judgement, record, switch
from svc.admin.release.installation import Installed
from svc.admin.release.rehearsal import rehearse
from svc.admin.release.signed import Release
from svc.admin.release.source import Source, download
from svc.errors import Conflict, SvcError, UpdateFailed
from svc.host.ids import now
from svc.settings import Settings

NEEDED = switch.NEEDED


def require_package(here: Installed) -> None:
    """Raise Conflict unless the package has installed this program."""
    if here.by != "package":
        raise Conflict(
            f"this svc runs from {here.directory} and was not installed by the package, so that no release"
            " can replace it",
            hint="in a checkout of the new release: sudo packaging/install",
        )


def apply(
    settings: Settings, here: Installed, release: Release, source: Source, say: Callable[[str], None]
) -> switch.Outcome:
    """Install the release; raises UpdateFailed when the version before is in place again, or still."""
    package = judgement.package_for(release, here)
    outline = {
        "at": now(), "from": here.version, "to": release.version, "commit": release.commit, "reason": "",
        "recovery_set": "",
    }  # fmt: skip
    with folder.alone(settings.state_dir) as place:
        folder.clean(place, kept=f"{package.sha256}.deb")
        say(f"fetching {package.file}")
        path = download(source, package, place)
        say("rehearsing the migration on a copy of the database")
        try:
            rehearse(path, release, source_of(settings), place)
        except UpdateFailed as error:
            _record(settings, outline, record.REHEARSAL_FAILED, error.message)
            raise
        detail = {"from": here.version, "commit": release.commit}
        as_owner(settings, partial(note, ADMIN_UPDATE_APPLY, release.version, "begun", **detail))
        why = f"svc admin update apply: {here.version} to {release.version}"
        change = switch.Switch(package=path, sha256=package.sha256, version=release.version, why=why)
        outcome = _switch(settings, change, outline, say)
        folder.clean(place)
    return outcome


def _switch(
    settings: Settings, change: switch.Switch, outline: dict[str, Any], say: Callable[[str], None]
) -> switch.Outcome:
    """Switch, with a record of it before and after."""
    _record(settings, outline, record.BEGUN)
    try:
        outcome = switch.switch(settings, change, say)
    except SvcError as error:
        _record(settings, outline, record.FAILED, error.message)
        raise
    outline["recovery_set"] = outcome.kept
    if not outcome.switched:
        _record(settings, outline, record.WENT_BACK, outcome.reason)
        raise UpdateFailed(
            f"{change.version} did not work, and {outline['from']} is in place again: {outcome.reason}",
            hint="sudo svc admin rollback list",
        )
    _record(settings, outline, record.OK)
    return outcome


def _record(settings: Settings, outline: dict[str, Any], outcome: str, reason: str = "") -> None:
    applied = outline | {"outcome": outcome, "reason": reason[: record.REASON_MAX]}
    record.change(settings.state_dir, applied=applied)
