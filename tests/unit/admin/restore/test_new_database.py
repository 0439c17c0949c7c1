"""A snapshot becomes the database: what is refused, and the rename that may be repeated."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from unit.admin.conftest import Svc
from unit.admin.rows import ask, leave_log

from svc.admin.restore import new_database, restore
from svc.errors import DatabaseRefused, SvcError


def test_the_log_of_the_old_database_is_not_applied_to_the_new_one(
    svc: Svc, database: str, snapshot: str, recovery: Path
) -> None:
    """The old one's last writes are in the recovery set, and in it only."""
    leave_log(database)
    assert svc("restore", snapshot, "--yes")[0] == 0
    assert ask(database, "PRAGMA integrity_check") == [("ok",)]
    assert ask(database, "SELECT count(*) FROM users WHERE name = 'late'") == [(0,)]
    (kept,) = recovery.iterdir()
    assert ask(str(kept / "svc.db"), "SELECT count(*) FROM users WHERE name = 'late'") == [(1,)]


def test_a_snapshot_that_changes_meanwhile(database: str, snapshot: str) -> None:
    descriptor = os.open(snapshot, os.O_RDONLY)
    with pytest.raises(SvcError, match="was changed while it was restored"):
        new_database.prepare(database, descriptor, "0" * 64, None, {"unknown": True}, os.getpid())
    os.close(descriptor)
    assert not list(Path(database).parent.glob("*.restoring*"))


def test_the_replacement_may_be_repeated_and_takes_no_other_file(database: str) -> None:
    new = Path(f"{database}.restoring")
    new.write_text("new")
    inode = new.stat().st_ino
    for _ in range(2):
        new_database.switch(database, inode, os.getpid())
        assert Path(database).read_text() == "new"
    new.write_text("planted")
    with pytest.raises(DatabaseRefused, match="is gone"):
        new_database.switch(database, 1, os.getpid())
    assert Path(database).read_text() == "new"


@pytest.mark.parametrize(
    "change", [{"inode": "1"}, {"head": [1, "x"]}, {"head": 1}, {"revoked": -1}, {"closed": None}]
)
def test_a_forged_result(change: dict[str, object]) -> None:
    good = {
        "inode": 1,
        "applied": 0,
        "sessions": 0,
        "revoked": 0,
        "closed": 0,
        "head": [1, "a" * 64],
        "archived": [0, ""],
    }
    assert restore.checked(good | {"more": "x"}) == good
    with pytest.raises(SvcError, match="no usable result"):
        restore.checked(good | change)
