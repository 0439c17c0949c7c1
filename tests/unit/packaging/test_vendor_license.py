"""The vendor's tool for licences, and the page of both: each line of packaging/vendor/README.md is run."""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from unit.licensing import CODE, ROOT, Vendor, vendor
from unit.releasing import make_package

LINES = re.findall(r"```sh\n(.*?)```", (ROOT / "packaging/vendor/README.md").read_text(), re.DOTALL)


@pytest.mark.allow_commands("bash", "dpkg-deb")
def test_the_lines_of_its_page_work(tmp_path: Path) -> None:
    """In a copy of the folder, one block after the other: two of licences, two of releases."""
    shutil.copytree(ROOT / "packaging/vendor", tmp_path / "packaging/vendor")
    for number in (12, 13):
        fields = {"Svc_System": f"debian-{number}", "Svc_Release": "1.2.0"}
        make_package(tmp_path, f"1.2.0+deb{number}", **fields)
    (tmp_path / "notes.txt").write_text("What is new.\n")
    env = {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    printed = []
    for block in LINES:
        command = ["bash", "-euc", block]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        printed.append(done.stdout)
    assert len(printed) == 4
    assert "holder: Example Ltd\n" in printed[1]
    assert "users: 50\n" in printed[1]
    assert "version: 1.2.0\n" in printed[3]
    packages = [f"svc_1.2.0+deb{number}_amd64.deb (debian-{number}, amd64)" for number in (12, 13)]
    assert f"packages: {', '.join(packages)}\n" in printed[3]
    for key in ("vendor.pem", "release.pem"):
        assert stat.S_IMODE((tmp_path / key).stat().st_mode) == 0o600


def test_the_private_key_is_never_replaced_and_may_be_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SVC_VENDOR_PASSPHRASE", "two mild owls")
    own = Vendor(tmp_path)
    assert "ENCRYPTED" in own.key.read_text()
    own.sign()
    with pytest.raises(SystemExit):
        vendor("keygen", own.key)
    monkeypatch.delenv("SVC_VENDOR_PASSPHRASE")
    with pytest.raises((SystemExit, TypeError)):
        own.sign()


@pytest.mark.parametrize(
    "options",
    [
        {"not_before": "2027-01-02", "not_after": "2027-01-01"}, {"users": "-1"}, {"users": "many"},
        {"not_after": "soon"}, {"request": "svc1"}, {"holder": ""},
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_signs_nothing(tmp_path: Path, options: dict[str, str]) -> None:
    with pytest.raises(SystemExit):
        Vendor(tmp_path).sign(**options)


def test_verify_finds_what_the_program_finds(tmp_path: Path) -> None:
    own, path = Vendor(tmp_path), tmp_path / "one.json"
    content = own.sign(users=5)
    path.write_bytes(content)
    assert "users: 5" in vendor("verify", "--keys", own.keys, path)
    for changed in (content.replace(b'"users": 5', b'"users": 6'), b"{}", b"", b"[]", b'{"license": 1}'):
        path.write_bytes(changed)
        with pytest.raises(SystemExit):
            vendor("verify", "--keys", own.keys, path)
    path.write_bytes(content)
    os.truncate(own.keys, 0)
    with pytest.raises(SystemExit):
        vendor("verify", "--keys", own.keys, "--request", CODE, path)
