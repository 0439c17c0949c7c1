from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from svc.admin.backup.sqlite_descriptor import as_path, end_with
from svc.host.owner import Owner, run_as

NOBODY = Owner(65534, 65534)


def test_a_file_that_the_account_cannot_reach_is_read_and_written(folder: Path, needs_root: None) -> None:
    """The file is root's, in a directory of root's; only the descriptor is passed on."""
    file = folder / "x.db"
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)

    def work() -> list[object]:
        with pytest.raises(PermissionError):
            os.stat(file)
        with as_path(descriptor) as path:
            connection = sqlite3.connect(f"file:{path}?mode=rw&nolock=1", uri=True)
            connection.execute("PRAGMA journal_mode = OFF")
            connection.execute("CREATE TABLE t (a)")
            connection.execute("INSERT INTO t VALUES (42)")
            connection.commit()
            connection.close()
            connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
            rows = connection.execute("SELECT a FROM t").fetchall()
            connection.close()
        return rows

    try:
        assert run_as(NOBODY, work) == [[42]]
    finally:
        os.close(descriptor)
    connection = sqlite3.connect(file)
    assert connection.execute("SELECT a FROM t").fetchall() == [(42,)]
    connection.close()


def test_other_files_are_opened_as_before_and_the_path_ends_with_the_block(folder: Path) -> None:
    descriptor = os.open(folder / "x.db", os.O_RDWR | os.O_CREAT, 0o600)
    with as_path(descriptor) as path:
        connection = sqlite3.connect(folder / "other.db")
        connection.execute("CREATE TABLE t (a)")
        connection.close()
        with pytest.raises(sqlite3.OperationalError, match="unable to open"):
            sqlite3.connect(f"file:{folder}/none/x.db?mode=rw", uri=True)
    with pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite3.connect(f"file:{path}?mode=rw", uri=True)
    os.close(descriptor)
    assert not os.path.lexists(path)


def test_a_closed_descriptor_is_an_error_of_sqlite(folder: Path) -> None:
    descriptor = os.open(folder / "x.db", os.O_RDWR | os.O_CREAT, 0o600)
    os.close(descriptor)
    with as_path(descriptor) as path, pytest.raises(sqlite3.OperationalError, match="unable to open"):
        sqlite3.connect(f"file:{path}?mode=rw&nolock=1", uri=True)


PROGRAM = """
import os, signal, sys
from svc.admin.backup.sqlite_descriptor import end_with
parent, (reading, writing) = os.getpid(), os.pipe()
if os.fork() == 0:
    os.setresuid(65534, 65534, 65534)
    end_with(parent)
    print(os.getpid(), flush=True)
    os.write(writing, b"x")
    signal.pause()
os.read(reading, 1)
os.kill(parent, signal.SIGKILL)
"""


@pytest.mark.allow_commands(os.path.basename(sys.executable))
def test_a_killed_command_takes_the_owners_process_with_it(needs_root: None) -> None:
    program = subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True)
    output, _ = program.communicate(timeout=30)  # until the pipe's last writer has ended
    assert int(output) > 1
    assert program.returncode == -9


def test_nothing_happens_to_the_command_itself() -> None:
    end_with(os.getpid())
