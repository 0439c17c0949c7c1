"""The program on the Debian that this host is not: without systemd, from the quickstart to its removal."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from machine.conftest import CACHES, HOST, OWN

HERE = Path(__file__).parent
CHECKS = re.findall(r"^check '([^']+)'", (HERE / "other/life.sh").read_text(), re.M)
OTHERS = {"bookworm": "trixie", "trixie": "bookworm"}
SECONDS_MAX = 900


@pytest.fixture(scope="session")
def said() -> Iterator[str]:
    """Everything that the checks said in there."""
    other = OTHERS.get(HOST, "trixie")
    tree = OWN / "other"
    environment = os.environ | {"SVC_MACHINE_SUITE": other}
    try:
        subprocess.run(
            [HERE / "build", CACHES[other], tree], check=True, timeout=SECONDS_MAX, env=environment
        )
        life = (HERE / "other/life.sh").read_text()
        (tree / "opt/check/life.sh").write_text(life)
        command = [HERE.parent / "run.d/enter", tree, "bash", "/opt/check/life.sh"]
        done = subprocess.run(command, timeout=SECONDS_MAX, capture_output=True, text=True, errors="replace")
        print(done.stdout, done.stderr)  # pytest shows it with the first failure
        yield done.stdout
    finally:
        subprocess.run(["rm", "-rf", tree], check=True)


@pytest.mark.machine
@pytest.mark.timeout(2 * SECONDS_MAX)
@pytest.mark.parametrize("name", CHECKS)
def test_on_the_other_debian(said: str, name: str) -> None:
    lines = [line for line in said.splitlines() if re.match(rf"(not )?ok - {re.escape(name)}[: (]", line)]
    assert lines, f"the machine never came to this check; it said:\n{said[-3000:]}"
    if lines[0].startswith("not ok"):
        pytest.fail(lines[0], pytrace=False)
