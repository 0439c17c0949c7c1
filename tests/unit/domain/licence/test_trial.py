"""The trial's start: "not reset by deleting or restoring the database"."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from svc.db.connect import database
from svc.domain.licence.trial import file_of, read_file, resolve, write_file

EARLY, LATE, NOW = "2026-01-01T00:00:00.000Z", "2026-02-01T00:00:00.000Z", "2026-03-01T00:00:00.000Z"


@pytest.mark.parametrize(
    ("fact", "in_file", "start"),
    [
        (None, None, NOW),
        (EARLY, None, EARLY),
        (None, EARLY, EARLY),
        (EARLY, LATE, EARLY),
        (LATE, EARLY, EARLY),
        ("2027-01-01T00:00:00.000Z", None, NOW),
        ("nonsense", EARLY, EARLY),
        ("", None, NOW),
    ],
)
def test_the_earlier_wins_and_the_database_keeps_it(
    db: str, fact: str | None, in_file: str | None, start: str
) -> None:
    if fact is not None:
        database.execute_sql("INSERT INTO facts (name, value) VALUES ('trial_started_at', ?)", (fact,))
    assert resolve(NOW, in_file) == start
    rows = database.execute_sql("SELECT value FROM facts WHERE name = 'trial_started_at'").fetchall()
    assert rows == [(start,)]


def test_the_file_is_there_for_all_to_read(tmp_path: Path) -> None:
    state = str(tmp_path / "state")
    assert read_file(state) is None
    write_file(state, EARLY)
    write_file(state, EARLY)
    assert read_file(state) == EARLY
    assert stat.S_IMODE(os.stat(file_of(state)).st_mode) == 0o644
    assert os.listdir(state) == ["trial"]


@pytest.mark.parametrize("content", ["", "tomorrow", "2026-01-01", EARLY + "X", "\0" * 100])
def test_a_file_without_a_time_tells_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / "trial").write_text(content)
    assert read_file(str(tmp_path)) is None


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda path: os.symlink("/etc/hostname", path)])
def test_what_is_no_file_tells_nothing(tmp_path: Path, make: object) -> None:
    make(tmp_path / "trial")  # type: ignore[operator]
    assert read_file(str(tmp_path)) is None
