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
    pid = os.fork()
    if pid == 0:
        with open(database, "rb"):
            os.close(writing)
            os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    try:
        for command in (("restore", snapshot, "--yes"), ("checkpoint",)):
            while f"(pid {pid})" not in (err := svc(*command)[2]):
                assert not err, err  # until the process has opened it
        assert f"{database} is open in " in err
    finally:
        os.close(writing)
        os.waitpid(pid, 0)
    with hold(database):
        code, _, err = svc("restore", snapshot, "--yes")
        assert code == 1
        assert f"is in use by svc server (pid {os.getpid()})" in err
    assert Path(database).read_bytes() == whole
    assert not list(recovery.iterdir())
