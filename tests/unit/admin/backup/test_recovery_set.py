"""Recovery sets: whole or not there."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from svc.admin.backup import recovery_set, snapshot
from svc.admin.backup.target import opened
from svc.host.owner import owner_of
from svc.settings import Settings


@pytest.fixture
def source(database: str) -> snapshot.Source:
    """The migrated database of `svc admin`."""
    return snapshot.Source(database, owner_of(database), "", Settings())


def test_a_set_has_the_digest_of_each_file(source: snapshot.Source, folder: Path) -> None:
    with opened(str(folder), instead="") as top:
        kept = recovery_set.keep(source, top, {"why": "a test"})
    path = Path(kept["path"])
    assert kept["database"] == str(path / "svc.db")
    assert (path.stat().st_mode & 0o777, path.name) == (0o700, kept["id"])
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["why"] == "a test"
    for file in manifest["files"]:
        assert hashlib.sha256((path / file["name"]).read_bytes()).hexdigest() == file["sha256"], file["name"]
    assert {file["name"] for file in manifest["files"]} | {"manifest.json"} == set(os.listdir(path))


def test_what_is_not_whole_goes(
    source: snapshot.Source, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stale, other = folder / ".restore-20260101T000000.000Z.partial", folder / "other"
    stale.mkdir()
    (stale / "svc.db").touch()
    other.mkdir()
    with opened(str(folder), instead="") as top:
        recovery_set.remove_stale(top)
        assert os.listdir(folder) == ["other"]
        monkeypatch.setattr(json, "dumps", lambda *_, **__: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            recovery_set.keep(source, top, {})
    assert os.listdir(folder) == ["other"]
