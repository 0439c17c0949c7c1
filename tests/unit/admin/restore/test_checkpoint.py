"""`svc admin checkpoint` of a database whose service is stopped."""

from __future__ import annotations

from pathlib import Path

from unit.admin.conftest import Svc
from unit.admin.rows import ask, leave_log


def test_checkpoint(svc: Svc, database: str) -> None:
    """ "Flushes the offline write-ahead log and closes the database sidecar files." """
    leave_log(database)
    assert Path(f"{database}-wal").stat().st_size
    code, out, err = svc("checkpoint")
    assert code == 0, err
    assert "of the log written back" in out
    assert not list(Path(database).parent.glob("svc.db-*"))
    assert ask(database, "SELECT count(*) FROM users WHERE name = 'late'") == [(1,)]
