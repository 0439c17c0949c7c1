"""With a full disk, what gives something back still finds room."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from svc.db import reserve
from svc.errors import StorageFailed, StorageFull


@pytest.fixture
def db(tmp_path: Path) -> str:
    path = tmp_path / "svc.db"
    path.touch()
    path.chmod(0o660)
    return str(path)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, db: str) -> SimpleNamespace:
    """A disk with `free` bytes besides the reserve's; a real small one is in tests/e2e/processes."""
    state = SimpleNamespace(free=1 << 30)

    def statvfs(_path: str) -> SimpleNamespace:
        taken = reserve.SIZE if reserve.is_whole(db) else 0
        return SimpleNamespace(f_bavail=state.free + reserve.SIZE - taken, f_frsize=1)

    monkeypatch.setattr(reserve.os, "statvfs", statvfs)
    return state


def test_it_is_made_once_and_given_up(db: str, disk: SimpleNamespace) -> None:
    assert reserve.make(db)
    assert not reserve.make(db)
    status = os.stat(reserve.path_of(db))
    assert status.st_blocks * 512 >= reserve.SIZE, "no hole"
    assert status.st_mode & 0o777 == 0o660
    disk.free = 0
    assert reserve.is_full(db)
    reserve.require_room(db)  # while it is there SQLite says when there is no room
    with reserve.entitled():
        reserve.require_room(db)
    assert not reserve.is_whole(db)
    with pytest.raises(StorageFull):
        reserve.require_room(db)
    with reserve.entitled():
        reserve.require_room(db)
    assert not reserve.make(db), "there is no more room than the reserve's own"
    disk.free = reserve.MARGIN
    assert reserve.make(db)
    assert not reserve.is_full(db)
    reserve.require_room(db)


def test_with_room_it_is_kept(db: str, disk: SimpleNamespace) -> None:
    reserve.make(db)
    with reserve.entitled():
        reserve.require_room(db)
    assert reserve.is_whole(db)


def test_without_it_there_is_no_refusal_while_there_is_room(db: str, disk: SimpleNamespace) -> None:
    reserve.require_room(db)
    assert not reserve.is_full(db)


def test_who_is_entitled_is_so_within_the_block(db: str, disk: SimpleNamespace) -> None:
    disk.free = -reserve.SIZE
    with reserve.entitled():
        with reserve.entitled():
            pass
        reserve.require_room(db)
    with pytest.raises(StorageFull):
        reserve.require_room(db)


def test_a_link_in_its_place_is_not_written_through(db: str, disk: SimpleNamespace, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"x" * 100)
    os.symlink(other, reserve.path_of(db))
    reserve.give_up(db)
    assert not reserve.make(db)
    assert other.read_bytes() == b"x" * 100


def test_the_probe_needs_the_disk_to_write(db: str, disk: SimpleNamespace, tmp_path: Path) -> None:
    reserve.probe(db)
    reserve.make(db)
    reserve.probe(db)
    os.unlink(reserve.path_of(db))
    os.mkdir(reserve.path_of(db))
    with pytest.raises(StorageFailed):
        reserve.probe(db)
