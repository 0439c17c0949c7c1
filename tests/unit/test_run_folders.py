"""The folders that a killed run of the tests has left are removed by the next one, and no others are."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

PARTS = Path(__file__).parents[1] / "run.d"
pytestmark = pytest.mark.allow_commands("bash")


def begin(parent: Path) -> subprocess.Popen[str]:
    """A run that has a folder there, until it is killed."""
    script = f'set -e; . {PARTS}/host.sh; own_folder "$0"; echo "$FOLDER"; read -r _'
    command = ["bash", "-c", script, str(parent)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def remove_dead(parent: Path) -> None:
    script = f'set -eu; . {PARTS}/host.sh; remove_dead_folders "$0"/svc-tests.*'
    subprocess.run(["bash", "-c", script, str(parent)], check=True)


def test_folders_of_dead_runs_go(tmp_path: Path) -> None:
    remove_dead(tmp_path)  # there is none
    other = tmp_path / "svc-tests.other"
    other.mkdir()
    with begin(tmp_path) as mine, begin(tmp_path) as dead:
        assert mine.stdout and dead.stdout
        left, kept = Path(dead.stdout.readline().strip()), Path(mine.stdout.readline().strip())
        (left / "deep").mkdir()
        remove_dead(tmp_path)
        assert left.exists() and kept.exists()
        dead.kill()
        dead.wait()
        (tmp_path / "svc-tests.link").symlink_to(left)
        remove_dead(tmp_path)
        assert kept.exists() and other.exists() and not left.exists()
        mine.kill()
