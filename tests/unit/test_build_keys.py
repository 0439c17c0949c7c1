"""The vendor's keys: baked in by the build, none in a checkout."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from unit.licensing import ROOT, Vendor, build

from svc.build_keys import license_keys, release_keys

pytestmark = pytest.mark.allow_commands(os.path.basename(sys.executable))


def test_a_checkout_has_none() -> None:
    if "site-packages" not in (sys.modules["svc.build_keys"].__file__ or ""):
        assert license_keys() == release_keys() == ()


def test_the_build_bakes_in_each_key_of_the_file(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    vendor, other = Vendor(first), Vendor(second)
    vendor.keys.write_text(f"# both\n\n{vendor.keys.read_text()}{other.keys.read_text()}")
    built = build(vendor, tmp_path, release_keys=other.keys.read_text())

    def printed(name: str) -> list[str]:
        program = f"from svc.build_keys import {name}; print(*(key.hex() for key in {name}()))"
        env = {"PYTHONPATH": str(built)}
        command = [sys.executable, "-c", program]
        return subprocess.run(command, env=env, capture_output=True, text=True, cwd="/").stdout.split()

    import base64

    keys = [base64.b64decode(line.split()[0]).hex() for line in vendor.keys.read_text().splitlines()[2:]]
    assert printed("license_keys") == keys
    assert printed("release_keys") == keys[1:]
    program = "from svc.version import commit, release; print(commit(), release())"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env={"PYTHONPATH": str(built)}, capture_output=True, text=True, cwd="/")
    declared = re.search(r"^version = (.+)$", (ROOT / "setup.cfg").read_text(), re.M)
    assert declared and done.stdout.split() == ["test", declared[1]]


@pytest.mark.parametrize("line", ["AAAA", "not base64", "A" * 44 + "="])
def test_a_mistyped_key_ends_the_build(tmp_path: Path, line: str) -> None:
    vendor = Vendor(tmp_path)
    vendor.keys.write_text(line + "\n")
    with pytest.raises(subprocess.CalledProcessError) as ended:
        build(vendor, tmp_path)
    assert b"is no Ed25519 public key" in ended.value.stderr
