"""The systems that the quickstart runs on, and what it says on others."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.allow_commands("bash")
PARTS = Path(__file__).parents[3] / "packaging/quickstart.d"


def check(
    root: Path, release: str, *, untested: str = "no", apt: bool = True
) -> subprocess.CompletedProcess[str]:
    """check_host on a host with this /etc/os-release."""
    (root / "os-release").write_text(release)
    if apt:
        (root / "apt-get").touch(mode=0o755)
    text = (PARTS / "host.sh").read_text()
    text = text.replace("/etc/os-release", f"{root}/os-release").replace(
        "/usr/bin/apt-get", f"{root}/apt-get"
    )
    script = f"set -euo pipefail; UNTESTED={untested}; . '{PARTS}/output.sh'\n{text}\ncheck_host"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True)


@pytest.mark.parametrize("number", ["12", "13"])
def test_both_debians_are_taken_without_a_word(tmp_path: Path, number: str) -> None:
    done = check(tmp_path, f'PRETTY_NAME="Debian GNU/Linux"\nID=debian\nVERSION_ID="{number}"\n')
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("release", "system"),
    [
        ("ID=debian\nVERSION_ID=11\n", "debian 11"),
        ("ID=debian\nVERSION_CODENAME=forky\n", "debian "),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "ubuntu 24.04"),
    ],
)
def test_another_is_refused_with_the_way_out(tmp_path: Path, release: str, system: str) -> None:
    refused = check(tmp_path, release)
    assert refused.returncode == 1
    assert f"nothing of it on this system ({system})" in refused.stderr
    assert "packaging/quickstart --untested" in refused.stderr
    tried = check(tmp_path, release, untested="yes")
    assert tried.returncode == 0 and f"this is {system}" in tried.stdout


def test_without_apt_there_is_no_way(tmp_path: Path) -> None:
    refused = check(tmp_path, 'ID="rhel"\nVERSION_ID="9.4"\n', untested="yes", apt=False)
    assert refused.returncode == 1 and "this host (rhel 9.4) has no apt-get" in refused.stderr
