"""The installation on a Debian 12 that systemd runs: quickstart, restart, reboot, removal.

The machine is booted once; each check of the guest's scripts is one test here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CACHE = Path("/var/cache/svc-tests/machine")
BOOTS = ("boot-1.sh", "boot-2.sh")
CHECKS = [
    name
    for boot in BOOTS
    for name in re.findall(r"^check '([^']+)'", (HERE / "guest" / boot).read_text(), re.M)
]
BOOT_SECONDS_MAX = 600


@pytest.fixture(scope="session")
def said() -> Iterator[str]:
    """Everything that the guest's checks said, both boots together."""
    if os.geteuid() != 0:
        pytest.skip("needs root: it boots a machine")
    tree = CACHE / "tree"
    subprocess.run([HERE / "build", CACHE, tree], check=True, timeout=900)
    try:
        subprocess.run([HERE / "boot", tree], timeout=BOOT_SECONDS_MAX, stdout=subprocess.DEVNULL)
        notes = tree / "opt/check"
        logs = "\n".join(path.read_text(errors="replace") for path in sorted(notes.glob("log.*")))
        print(logs)  # pytest shows it with the first failure
        yield "\n".join(path.read_text(errors="replace") for path in sorted(notes.glob("out.*")))
    finally:
        shutil.rmtree(tree, ignore_errors=True)


@pytest.mark.machine
@pytest.mark.timeout(BOOT_SECONDS_MAX + 900)
@pytest.mark.parametrize("name", CHECKS)
def test_on_a_machine_with_systemd(said: str, name: str) -> None:
    lines = [line for line in said.splitlines() if re.match(rf"(not )?ok - {re.escape(name)}[: (]", line)]
    assert lines, f"the machine never came to this check; it said:\n{said[-3000:]}"
    if lines[0].startswith("not ok"):
        pytest.fail(lines[0], pytrace=False)
