"""The installation on a Debian that systemd runs: quickstart, restart, reboot, removal; then the package.

The machine is booted once and reboots itself; each check of the guest's scripts is one test here.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKS = [
    name
    for path in sorted((HERE / "guest").glob("*.sh"))
    for name in re.findall(r"^check '([^']+)'", path.read_text(), re.M)
]
PREVIOUS = set(re.findall(r"^check '([^']+)'", (HERE / "guest/previous.sh").read_text(), re.M))
BOOT_SECONDS_MAX = 1500  # a third of that where nothing else runs


@pytest.fixture(scope="session")
def said(machine: Path) -> str:
    """Everything that the guest's checks said, all boots together."""
    subprocess.run([HERE / "boot", machine], timeout=BOOT_SECONDS_MAX, stdout=subprocess.DEVNULL)
    notes = machine / "opt/check"
    logs = "\n".join(path.read_text(errors="replace") for path in sorted(notes.glob("log.*")))
    print(logs)  # pytest shows it with the first failure
    return "\n".join(path.read_text(errors="replace") for path in sorted(notes.glob("out.*")))


@pytest.mark.machine
@pytest.mark.timeout(BOOT_SECONDS_MAX + 900)
@pytest.mark.parametrize("name", CHECKS)
def test_on_a_machine_with_systemd(machine: Path, said: str, name: str) -> None:
    if name in PREVIOUS and not list((machine / "opt/debs").glob("svc_0.0.9_*.deb")):
        pytest.skip(
            "no package of the previous release: not for this Debian, or its commit is not in this checkout"
        )
    lines = [line for line in said.splitlines() if re.match(rf"(not )?ok - {re.escape(name)}[: (]", line)]
    assert lines, f"the machine never came to this check; it said:\n{said[-3000:]}"
    if lines[0].startswith("not ok"):
        pytest.fail(lines[0], pytrace=False)
