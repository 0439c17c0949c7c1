"""What is installed, by dpkg's own record."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.admin.backup import package
from svc.admin.release import installation

pytestmark = pytest.mark.allow_commands("dpkg", "dpkg-query")
STATUS = """\
Package: svc
Status: install ok installed
Maintainer: Example <svc@example.org>
Architecture: amd64
Version: 1.2.0{suffix}
{fields}Description: test

"""


def test_a_checkout_has_no_version() -> None:
    here = installation.installed()
    assert (here.by, here.version) == ("checkout", "")
    assert here.name == f"commit {here.commit[:12]}"
    assert here.os.startswith(("debian-", "ubuntu-"))
    assert here.architecture in ("amd64", "arm64")
    assert (Path(here.directory) / "__main__.py").exists()


@pytest.mark.parametrize(
    ("suffix", "fields"), [("+deb12", "Svc-System: debian-12\nSvc-Release: 1.2.0\n"), ("", "")]
)
def test_the_package_has_the_one_of_dpkg(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, fields: str
) -> None:
    """Of the release: what the package's version says of its system is the same for all of them."""
    (tmp_path / "var/lib/dpkg/info").mkdir(parents=True)
    (tmp_path / "var/lib/dpkg/status").write_text(STATUS.format(suffix=suffix, fields=fields))
    monkeypatch.setattr(package, "ROOT", str(tmp_path))
    assert installation.installed().by == "checkout"  # it is installed, but this is not its program
    monkeypatch.setattr(package, "__file__", f"{tmp_path}/usr/lib/svc/python/svc/package.py")
    here = installation.installed()
    assert (here.by, here.version, here.name) == ("package", "1.2.0", "1.2.0")


@pytest.mark.parametrize(
    ("one", "relation", "other", "holds"),
    [("1.2.0~rc1", "lt", "1.2.0", True), ("1.10", "gt", "1.9", True), ("1:0", "lt", "9", False)],
)
def test_versions_by_dpkgs_order(one: str, relation: str, other: str, holds: bool) -> None:
    assert installation.compare(one, relation, other) is holds
