"""Fault test 9: each call that writes fails in turn, with EIO, with ENOSPC, or writes only a part.

Without a shim at most the disk as a whole can fail (tests/e2e/processes/test_failing_disk.py). The library
that is preloaded here is built by the test; nothing of it is in the program.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from depths import rounds, sample
from unit.admin.rows import change, user

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
POINTS = rounds(4, 4, 10_000)  # of each way to fail; a release tries every call
PLACES = sample(["recovery", "data/svc.db.restoring", "state"], 1, "the same calls in another folder")
pytestmark = [
    pytest.mark.allow_commands("cc", "python", "python3"),
    pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler on this host (apt-get install gcc)"),
]
Result = list[Any]  # way, number, exit code, outcome, output


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that is preloaded."""
    return tmp_path_factory.mktemp("failing") / "failing_calls.so"


def run(library: Path, command: str, database: str, folder: Path, argument: str) -> list[Result]:
    if not library.exists():
        build = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, HERE / "failing_calls.c"]
        subprocess.run([*build, "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, HERE / "failing_calls.py", command, str(POINTS), database, folder, argument],
        env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(json.loads(done.stdout))


def judge(found: list[Result]) -> Counter[tuple[str, bool]]:
    """No run may be wrong, or fail without a message of ours; how many came to what."""
    for way, number, code, outcome, output in found:
        what = f"{way} at call {number}: exit code {code}, {outcome}\n{output}"
        assert not outcome.startswith("wrong"), what
        assert "Traceback" not in output, what
        assert code == 0 or ("svc: " in output and "hint: " in output), what
        assert code in (0, 1), what
        if way in ("none", "short"):  # a part that was written is no error; the rest follows
            assert code == 0, what
    return Counter((outcome, code == 0) for _, _, code, outcome, _ in found)


def test_backups(library: Path, database: str, folder: Path, tmp_path: Path) -> None:
    """A snapshot is whole, or there is none; the database is as it was."""
    counts = judge(run(library, "backup", database, tmp_path, str(folder)))
    assert counts["none", False] >= 8
    assert counts["complete", True] >= 4


@pytest.mark.parametrize("place", PLACES)
def test_restores(library: Path, database: str, snapshot: str, tmp_path: Path, place: str) -> None:
    """Old or new, never mixed: what was interrupted by the disk is finished by the one command."""
    change(database, user(30, "new"))
    counts = judge(run(library, "restore", database, tmp_path / place, snapshot))
    if place == "state":  # of root's: the note, the audit that it remembers
        assert counts["finished", False] >= 4
    else:
        assert counts["old", False] >= 8
        assert counts["new", True] >= 4


def test_writes(library: Path, database: str, tmp_path: Path) -> None:
    """What was acknowledged is there; what failed was not acknowledged, and is an error of ours."""
    counts = judge(run(library, "write", database, tmp_path / "data", ""))
    assert counts["kept", False] >= 8
