"""Fault test 9, for switches: each call of `rollback apply` and `update apply` that writes fails in turn.

The program that is installed meanwhile writes by itself, without the preloaded library: its restore is in
test_failing_calls.py.
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
from unit.admin.conftest import Svc
from unit.admin.packages import MORE, PROGRAMS, Place, sets, to
from unit.admin.release.conftest import vendor
from unit.admin.release.test_apply import Releases
from unit.admin.rows import change, user
from unit.releasing import ReleaseVendor

from svc.admin.release import switch
from svc.settings import Settings

__all__ = ["vendor"]  # a fixture
HERE = Path(__file__).parent
ROOT = HERE.parents[3]
POINTS = rounds(1, 1, 10_000)  # of each way to fail; a release tries every call
PARTS = sample(["state", "recovery"], 1, "the same calls in another folder")
pytestmark = [
    pytest.mark.allow_commands("cc", *PROGRAMS, "python", "python3", os.path.basename(sys.executable)),
    pytest.mark.timeout(600 if POINTS == 1 else 7200),
    pytest.mark.skipif(not shutil.which("cc"), reason="no C compiler on this host (apt-get install gcc)"),
]


def run(tmp_path: Path, part: str, **wanted: Any) -> Counter[str]:
    """How many runs came to what; each is whole, and says what to do."""
    library = tmp_path / "failing_calls.so"
    build = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", library, HERE / "failing_calls.c"]
    subprocess.run([*build, "-ldl"], check=True)
    done = subprocess.run(
        [sys.executable, HERE / "failing_switches.py", str(POINTS), tmp_path, part, json.dumps(wanted)],
        env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": f"{ROOT}:{ROOT}/tests"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    wrong = [
        f"{way} at call {number}: exit code {code}, {outcome}\n{output}"
        for way, number, code, outcome, output in results
        if not is_right(way, code, outcome, output)
    ]
    assert not wrong, "\n".join(wrong)
    return Counter(outcome for *_, outcome, _ in results)


def is_right(way: str, code: int, outcome: str, output: str) -> bool:
    """Whole, and a failure has a message of ours and the next command."""
    if outcome.startswith("wrong") or "Traceback" in output or code not in (0, 1):
        return False
    if way in ("none", "short"):  # a part that was written is no error; the rest follows
        return code == 0
    return code == 0 or ("svc: " in output and ("hint: " in output or "next: " in output))


@pytest.mark.parametrize("part", PARTS)
def test_rollbacks(svc: Svc, place: Place, database: str, recovery: Path, tmp_path: Path, part: str) -> None:
    """The old program with the old database, or the new one with its own; never one of each."""
    change(database, user(30, "before"))
    assert switch.switch(Settings(), to(place, "2")).switched
    (kept,) = sets(recovery, "upgrade")
    argv = ["rollback", "apply", kept.name, "--yes"]
    counts = run(tmp_path, part, argv=argv, target="1", keys=[])
    assert counts["new"], counts
    assert counts["old"] + counts["finished old"] + counts["finished new"] >= 2, counts


@pytest.mark.parametrize("part", PARTS)
def test_updates(
    place: Place, database: str, tmp_path: Path, part: str, vendor: ReleaseVendor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """The same for a release that is fetched, rehearsed and installed."""
    change(database, user(30, "before"))
    monkeypatch.setenv("SVC_UPDATE_SOURCE", f"{tmp_path}/release")
    Releases(vendor, place, tmp_path / "release").offer(migration=MORE)
    argv, keys = ["update", "apply", "--yes"], [vendor.public.hex()]
    counts = run(tmp_path, part, argv=argv, target="2", keys=keys)
    assert counts["new"], counts
    assert counts["old"] + counts["finished old"] + counts["finished new"] >= 2, counts
