"""Which release is applied: dpkg's order of versions, and what was seen before."""

from __future__ import annotations

from typing import Any

import pytest

from svc.admin.release import judgement
from svc.admin.release.installation import Installed
from svc.admin.release.signed import Package, Release
from svc.errors import ReleaseInvalid

pytestmark = pytest.mark.allow_commands("dpkg")
HERE = Installed("package", "/usr/lib/svc/python/svc", "1.2.0", "a" * 40, "debian-12", "amd64")
PACKAGE = Package("debian-12", "amd64", "svc.deb", 1, "0" * 64)


def release(version: str, **members: Any) -> Release:
    whole = Release(version, "b" * 40, 9, "2026-01-02T00:00:00Z", "1.0.0", (PACKAGE,), "")
    return whole._replace(**members)


@pytest.mark.parametrize(
    ("version", "newer"),
    [
        ("1.2.0", False),
        ("1.2.1", True),
        ("1.10.0", True),
        ("1.2.0+b1", True),
        ("1:0.1", True),
        ("1.2.0-1", True),
    ],
)
def test_newer_by_dpkgs_order(version: str, newer: bool) -> None:
    assert judgement.is_newer(release(version), HERE) is newer


@pytest.mark.parametrize("version", ["1.1.9", "1.2.0~rc1", "0:1.1"])
def test_a_downgrade_is_refused(version: str) -> None:
    with pytest.raises(ReleaseInvalid, match="which is older than the installed"):
        judgement.is_newer(release(version), HERE)


def test_a_checkout_has_no_version_but_a_commit() -> None:
    checkout = HERE._replace(by="checkout", version="")
    assert judgement.is_newer(release("0.1"), checkout)
    assert not judgement.is_newer(release("9.9", commit="a" * 40), checkout)


SEEN = {"version": "1.4.0", "published_at": "2026-01-02T00:00:00Z", "at": "2026-01-03T00:00:00.000Z"}


def test_an_older_release_than_one_that_was_seen_is_refused() -> None:
    """A replay: it is newer than what is installed, and signed."""
    judgement.require_fresh(release("1.3.0"), None)
    judgement.require_fresh(release("1.4.0"), SEEN)
    judgement.require_fresh(release("1.4.1", published_at="2020-01-01T00:00:00Z"), SEEN)
    for old in (
        release("1.3.0"),
        release("1.4.0", published_at="2026-01-01T00:00:00Z"),
        release("1.4.0~rc1"),
    ):
        with pytest.raises(ReleaseInvalid, match="an old release is offered again"):
            judgement.require_fresh(old, SEEN)


def test_the_package_is_this_hosts() -> None:
    others = (PACKAGE._replace(os="debian-13"), PACKAGE._replace(architecture="arm64"))
    both = release("1.3.0", packages=(*others, PACKAGE))
    assert judgement.package_for(both, HERE) == PACKAGE
    assert judgement.package_for(both, HERE._replace(os="debian-13")) == others[0]
    with pytest.raises(ReleaseInvalid, match="only for debian-13 amd64, debian-12 arm64"):
        judgement.package_for(release("1.3.0", packages=others), HERE)


def test_a_release_that_needs_another_one_first_is_refused() -> None:
    judgement.package_for(release("1.3.0", min_from="1.2.0"), HERE)
    with pytest.raises(ReleaseInvalid, match="install a release between them first"):
        judgement.package_for(release("1.3.0", min_from="1.2.1"), HERE)
