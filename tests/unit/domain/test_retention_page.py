"""docs/database.md says what the program does, and root's log can be rotated under it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conventions.inspection import ROOT

from svc import limits
from svc.admin.backup import recovery_sets
from svc.domain import operations
from svc_helper.agent import home
from svc_helper.agent.runtime import rotating_log

HOUR_S, DAY_S = 3600, 24 * 3600
ROWS = {
    "operations and their errors": [limits.ENDED_DAYS_KEPT],
    "logs of operations (builds)": [operations.LOGS_KEPT, operations.LOG_LINES_MAX],
    "tokens": [limits.TOKEN_DAYS_MAX, limits.ENDED_DAYS_KEPT],
    "sessions": [
        limits.SESSION_IDLE_S // HOUR_S, limits.SESSION_MAX_S // DAY_S,
        limits.SESSION_IDLE_SUPERUSER_S // HOUR_S, limits.SESSION_MAX_SUPERUSER_S // HOUR_S,
        limits.SESSIONS_PER_USER,
    ],
    "failed logins": [limits.LOGIN_WINDOW_S // 60],
    "places of logins": [limits.LOGIN_PLACES_PER_USER],
    "revisions of a template": [limits.REVISIONS_KEPT],
    "output of a workspace": [home.LOG_SIZE_MAX >> 20],
    "output of a launcher": [rotating_log.FILE_BYTES >> 20],
    "recovery sets": [recovery_sets.KEPT],
}  # fmt: skip
WRITER = """
import sys
from svc_helper.root.log import log
for line in sys.stdin:
    log(line.strip())
    print(flush=True)
"""


def page() -> dict[str, str]:
    text = (ROOT / "docs/database.md").read_text()
    return dict(re.findall(r"^\| ([^|]+?) \| ([^|]+?) \|", text, re.MULTILINE))


@pytest.mark.parametrize("what", ROWS)
def test_the_page_has_the_programs_numbers(what: str) -> None:
    assert [int(number) for number in re.findall(r"\d+", page()[what])] == ROWS[what]


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_the_helper_goes_on_in_a_log_that_was_cut(tmp_path: Path) -> None:
    """As logrotate's copytruncate does it; without a hole before the next line."""
    assert "copytruncate" in (ROOT / "packaging/logrotate.d/svc").read_text().split()
    path = tmp_path / "server.log"
    with open(path, "ab") as log:
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            env={"PYTHONPATH": str(ROOT)}, text=True,
        )  # fmt: skip
    assert writer.stdin and writer.stdout
    for number, message in enumerate(("before", "after")):
        writer.stdin.write(f"{message}\n")
        writer.stdin.flush()
        writer.stdout.readline()
        if number == 0:
            shutil.copy(path, tmp_path / "server.log.1")
            os.truncate(path, 0)
    writer.stdin.close()
    assert writer.wait(10) == 0
    writer.stdout.close()
    assert json.loads((tmp_path / "server.log.1").read_text())["message"] == "before"
    assert json.loads(path.read_text())["message"] == "after"
