from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from svc.admin.backup.verify import record_of
from svc.errors import FileRefused


@pytest.fixture
def snapshot(svc: Any, database: str, folder: Path) -> Path:
    assert svc("backup", "--out", str(folder / "x.db")) == (0, "", "")
    return folder / "x.db"


def test_what_it_holds(svc: Any, snapshot: Path) -> None:
    code, out, err = svc("backup", "--verify", str(snapshot))
    assert (code, err) == (0, "")
    values = dict(line.split("\t", 1) for line in out.splitlines())
    assert (values["restorable"], values["problem"], values["users"]) == ("true", "", "1")
    assert values["digest"] == "as in the .json file"
    assert "secret.key=a secret: only with --with-secrets" in values["not_in_it"]


def test_a_changed_letter_is_found_by_the_digest(svc: Any, snapshot: Path) -> None:
    """A changed letter within a text is nothing that SQLite's own check could see."""
    content = snapshot.read_bytes()
    snapshot.write_bytes(content.replace(b"root", b"boot", 1))
    code, out, _ = svc("backup", "--verify", str(snapshot), "--json")
    assert code == 1
    record = json.loads(out)
    assert not record["restorable"]
    assert "its digest is not the .json file's" in record["problem"]


def test_without_its_side_file(snapshot: Path) -> None:
    os.unlink(f"{snapshot}.json")
    record = record_of(str(snapshot))
    assert record["restorable"]
    assert record["digest"].startswith("unknown")


def test_a_side_file_of_somebody_elses_counts_for_nothing(snapshot: Path, needs_root: None) -> None:
    os.chown(f"{snapshot}.json", 1234, 1234)
    assert record_of(str(snapshot))["digest"].startswith("unknown")


def test_small_files_that_are_gone(snapshot: Path) -> None:
    os.unlink(f"{snapshot}.host.tar")
    record = record_of(str(snapshot))
    assert record["host_files"]["holds"] == []
    assert record["host_files"]["missing"]["trial"] == "x.db.host.tar is not beside it"


def test_what_is_no_snapshot(tmp_path: Path, snapshot: Path) -> None:
    os.symlink(snapshot, tmp_path / "link")
    os.mkfifo(tmp_path / "pipe")
    for name, why in (("link", "symbolic link"), ("pipe", "not a regular file"), ("none", "No such file")):
        with pytest.raises(FileRefused, match=why):
            record_of(str(tmp_path / name))
    (tmp_path / "text").write_text("no database" * 900)
    assert record_of(str(tmp_path / "text"))["problem"] == "file is not a database"
