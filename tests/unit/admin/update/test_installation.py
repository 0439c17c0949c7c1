"""What is installed, by dpkg's own record."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.admin.update import installation
from svc.errors import HostRefused

pytestmark = pytest.mark.allow_commands("dpkg", "dpkg-query")
STATUS = """\
Package: svc
Status: install ok {state}
Maintainer: Example <svc@example.org>
Architecture: amd64
Version: 1.2.0
Description: test

"""


@pytest.fixture
def dpkg(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database of dpkg's, for this test alone."""
    monkeypatch.setitem(installation.ENVIRONMENT, "DPKG_ADMINDIR", str(tmp_path))
    (tmp_path / "status").write_text("")
    (tmp_path / "info").mkdir()
    return tmp_path / "status"


def test_a_checkout_has_no_version() -> None:
    here = installation.installed("/opt/svc/lib/python3.11/site-packages/svc")
    assert (here.by, here.version) == ("checkout", "")
    assert here.os.startswith(("debian-", "ubuntu-"))
    assert here.architecture in ("amd64", "arm64")


def test_the_package_has_the_one_of_dpkg(dpkg: Path) -> None:
    dpkg.write_text(STATUS.format(state="installed"))
    here = installation.installed("/usr/lib/svc/python/svc")
    assert (here.by, here.version, here.name) == ("package", "1.2.0", "1.2.0")


@pytest.mark.parametrize("text", ["", STATUS.format(state="half-configured")])
def test_a_package_that_is_not_whole_is_said(dpkg: Path, text: str) -> None:
    dpkg.write_text(text)
    with pytest.raises(HostRefused, match="is not completely installed"):
        installation.installed("/usr/lib/svc/python/svc")
