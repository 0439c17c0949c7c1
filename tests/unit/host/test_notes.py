"""Notes of what is under way: durable, the caller's own, nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from svc.errors import DatabaseRefused
from svc.host import notes


def test_a_note_is_there_until_it_is_removed(tmp_path: Path) -> None:
    path = str(tmp_path / "state" / "note")
    assert notes.read(path) is None
    notes.put(path, {"step": "package"})
    assert notes.read(path) == {"step": "package"}
    assert os.stat(path).st_mode & 0o777 == 0o600
    notes.put(path, {"step": "start"})
    assert notes.read(path) == {"step": "start"}
    notes.remove(path)
    assert notes.read(path) is None


@pytest.mark.parametrize("content", ["", "{", "[]", "link", "directory", "pipe"])
def test_what_is_no_note_stops_everything(tmp_path: Path, content: str) -> None:
    path = tmp_path / "note"
    if content == "link":
        path.symlink_to("elsewhere")
    elif content == "directory":
        path.mkdir()
    elif content == "pipe":
        os.mkfifo(path)
    else:
        path.write_text(content)
    with pytest.raises(DatabaseRefused, match=r"cannot be read|is not what svc wrote"):
        notes.read(str(path))
