"""What one process finds wrong with the database, all of them know, and the next start too."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc.db import condition, faults


@pytest.fixture(autouse=True)
def nothing_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condition, "_seen", {})


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = tmp_path / "svc.db"
    path.touch()
    path.chmod(0o660)
    return str(path)


def test_damage_is_for_all_until_it_is_cleared(db: str) -> None:
    assert condition.find(db) is None
    assert condition.find_damage(db) is None
    assert condition.note(db, faults.damaged("page 30"))
    assert not condition.note(db, faults.damaged("page 31")), "no news"
    found = condition.find_damage(db)
    assert found is not None
    assert "page 30" in found.error.message
    assert found.error.code == "database_damaged"
    assert (Path(condition.path_of(db)).stat().st_mode & 0o777) == 0o660
    assert not condition.clear(db, "storage_failed")
    assert condition.clear(db, "database_damaged")
    assert condition.find(db) is None


def test_damage_is_not_hidden_by_the_disk(db: str) -> None:
    condition.note(db, faults.failed("EIO"))
    assert condition.find_damage(db) is None
    condition.note(db, faults.damaged("page 30"))
    assert not condition.note(db, faults.failed("EIO"))
    found = condition.find(db)
    assert found is not None
    assert found.code == "database_damaged"


def test_a_full_disk_is_no_lasting_condition(db: str) -> None:
    assert not condition.note(db, faults.full())
    assert condition.find(db) is None


def test_a_disk_that_does_not_take_the_file(db: str, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = db.replace("svc.db", "missing/svc.db")
    condition.note(missing, faults.damaged("page 30"))
    assert condition.find_damage(missing) is not None
    monkeypatch.setattr(condition.time, "monotonic", lambda: 1e12)
    assert condition.find_damage(missing) is None, "a lasting fault is seen again"


@pytest.mark.parametrize("content", ["", "{}", "[1]", "\0", '{"code": 1}'])
def test_a_file_that_cannot_be_understood_counts(db: str, content: str) -> None:
    Path(condition.path_of(db)).write_text(content)
    assert condition.find_damage(db) is not None


def test_a_link_is_not_followed(db: str, tmp_path: Path) -> None:
    (tmp_path / "other").write_text('{"code": "database_damaged", "reason": "", "at": ""}')
    Path(condition.path_of(db)).symlink_to(tmp_path / "other")
    found = condition.find(db)
    assert found is not None
    assert found.code == "storage_failed"
