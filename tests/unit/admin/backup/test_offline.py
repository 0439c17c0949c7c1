"""Restore and checkpoint need the database for themselves."""

from __future__ import annotations

import os
from pathlib import Path

from unit.admin.conftest import Svc

from svc.db.lock import hold


def test_it_is_refused_while_the_database_is_in_use(
    svc: Svc, database: str, snapshot: str, recovery: Path
) -> None:
    whole = Path(database).read_bytes()
    reading, writing = os.pipe()
    opened, opens = os.pipe()
    pid = os.fork()
    if pid == 0:
        with open(database, "rb"):
            os.write(opens, b"1")
            os.close(writing)
            os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    os.close(opens)  # so that the end of a child which cannot open it is seen
    try:
        assert os.read(opened, 1)
        for command in (("restore", snapshot, "--yes"), ("checkpoint",)):
            err = svc(*command)[2]
            assert f"{database} is open in " in err
            assert f"(pid {pid})" in err
    finally:
        for end in (writing, opened):
            os.close(end)
        os.waitpid(pid, 0)
    with hold(database):
        code, _, err = svc("restore", snapshot, "--yes")
        assert code == 1
        assert f"is in use by svc server (pid {os.getpid()})" in err
        err = svc("restore", f"{snapshot}-none", "--yes")[2]
        assert "No such file" in err and "in use" not in err, "nobody stops the service for that"
    assert Path(database).read_bytes() == whole
    assert not list(recovery.iterdir())
