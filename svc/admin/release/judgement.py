"""Which release may be applied: one for this host, newer than what is installed, not older than any seen."""

from __future__ import annotations

from typing import Any

from svc.admin.release.installation import Installed, compare
from svc.admin.release.signed import Package, Release
from svc.errors import ReleaseInvalid

STATUS = "sudo svc admin update status"


def require_fresh(release: Release, seen: dict[str, Any] | None) -> None:
    """Raise ReleaseInvalid for a release that is older than the newest one seen: somebody offers it again."""
    if seen is None:
        return
    older = compare(release.version, "lt", seen["version"])
    same = not older and compare(release.version, "eq", seen["version"])
    if older or (same and release.published_at < seen["published_at"]):
        raise ReleaseInvalid(
            f"the source offers {release.version} of {release.published_at[:10]}, but {seen['version']} of"
            f" {seen['published_at'][:10]} was seen on {seen['at'][:10]}: an old release is offered again",
            hint=STATUS,
        )


def is_newer(release: Release, here: Installed) -> bool:
    """Whether there is something to apply; raises ReleaseInvalid for one older than what is installed."""
    if not here.version:
        return release.commit != here.commit
    if compare(release.version, "lt", here.version):
        raise ReleaseInvalid(
            f"the source offers {release.version}, which is older than the installed {here.version};"
            " an update never goes back",
            hint="sudo svc admin rollback list",
        )
    return compare(release.version, "gt", here.version)


def package_for(release: Release, here: Installed) -> Package:
    """The package for this host; raises ReleaseInvalid when there is none, or not from this version."""
    if here.version and compare(here.version, "lt", release.min_from):
        raise ReleaseInvalid(
            f"{release.version} is an update for {release.min_from} and newer, and {here.version} is"
            " installed: install a release between them first",
            hint=STATUS,
        )
    for package in release.packages:
        if (package.os, package.architecture) == (here.os, here.architecture):
            return package
    offered = ", ".join(f"{each.os} {each.architecture}" for each in release.packages)
    raise ReleaseInvalid(
        f"{release.version} has no package for this host ({here.os} {here.architecture}), only for {offered}",
        hint=STATUS,
    )
