"""The note of a restore that is under way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.errors import DatabaseRefused
from svc.host import restoring


def test_while_it_is_there_nothing_uses_the_database(tmp_path: Path) -> None:
    state, database = str(tmp_path), str(tmp_path / "svc.db")
    restoring.require_none(state, database)
    restoring.put(state, {"database": database})
    restoring.require_none(state, f"{database}-of-another")
    with pytest.raises(DatabaseRefused, match="was interrupted") as caught:
        restoring.require_none(state, database)
    assert f"svc admin restore --finish --db {database}" in caught.value.hint
    restoring.remove(state, database)
    restoring.require_none(state, database)


def test_what_an_interrupted_preparation_left_is_removed(tmp_path: Path) -> None:
    database = tmp_path / "svc.db"
    for name in ("svc.db", "svc.db-wal", "svc.db.restoring", "svc.db.restoring-wal", "svc.db.restoring.held"):
        (tmp_path / name).touch()
    for _ in range(2):
        restoring.remove_draft(str(database))
        assert sorted(path.name for path in tmp_path.iterdir()) == ["svc.db", "svc.db-wal"]


@pytest.mark.parametrize("how", ["text", "list", "link", "pipe"])
def test_what_is_no_note_is_not_obeyed_and_not_ignored(tmp_path: Path, how: str) -> None:
    state, database = str(tmp_path), str(tmp_path / "svc.db")
    path = Path(restoring.path_of(state, database))
    if how == "link":
        path.symlink_to("/etc/passwd")
    elif how == "pipe":
        os.mkfifo(path)
    else:
        path.write_text({"text": "no JSON", "list": "[]"}[how])
    with pytest.raises(DatabaseRefused):
        restoring.require_none(state, database)
