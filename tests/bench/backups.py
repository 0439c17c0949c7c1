"""`svc admin backup` of a database of 500 MB against `sqlite3 .backup`, idle and beside a writer.

`tests/run bench -- backups`. Ours checks what it has written, theirs does not: so there is a row
against `.backup` followed by the same check by hand. Beside a writer `.backup` begins again after each
write, and is ended after GIVEN_UP_S.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.pairs import Row, Side, pair
from bench.stage import Stage
from e2e.installation import PREFIX, SVC
from e2e.surroundings import in_database

MEGABYTES = 500
GIVEN_UP_S = 30.0
ROUNDS = 5

FILL = """
import hashlib, os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30)
with connection:
    for number in range(int(sys.argv[2]) * 20):
        content = os.urandom(50_000)
        row = (hashlib.sha256(content).hexdigest(), 50_000, content)
        connection.execute("INSERT INTO files VALUES (?, ?, ?)", row)
"""
WRITE = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=30, isolation_level=None)
connection.execute("PRAGMA wal_autocheckpoint = 0")
number = 0
while True:
    connection.execute("INSERT OR REPLACE INTO facts VALUES ('benchmark', ?)", (str(number),))
    number += 1
"""


def as_service(env: dict[str, str], program: str, *arguments: str) -> subprocess.Popen[bytes]:
    """A Python program on the database, as the account that it belongs to."""
    account = pwd.getpwnam("svc")
    return subprocess.Popen(
        [str(PREFIX / "bin/python3"), "-I", "-c", program, env["SVC_DB"], *arguments],
        cwd="/", user=account.pw_uid, group=account.pw_gid, extra_groups=[],
    )  # fmt: skip


@contextmanager
def writing(env: dict[str, str]) -> Iterator[None]:
    """Somebody who writes at full rate."""
    writer = as_service(env, WRITE)
    try:
        yield
    finally:
        writer.kill()
        writer.wait()


def rows(set_up: Stage) -> Iterator[Row]:
    """Idle, idle with the check on both sides, and beside a writer."""
    env = set_up.env
    if as_service(env, FILL, str(MEGABYTES)).wait():
        raise RuntimeError("the database could not be filled")
    account = pwd.getpwnam("svc")
    folder = Path(env["SVC_STATE_DIR"], "bench-backups")
    folder.mkdir(mode=0o700)
    theirs = folder / "theirs"
    theirs.mkdir()
    for path in (folder, theirs):
        path.chmod(0o755)
    os.chown(theirs, account.pw_uid, account.pw_gid)

    def sqlite3(*commands: str, database: str = env["SVC_DB"]) -> None:
        try:
            subprocess.run(
                ["sqlite3", "-bail", database, *commands], check=True, timeout=GIVEN_UP_S, cwd="/",
                stdout=subprocess.DEVNULL, user=account.pw_uid, group=account.pw_gid, extra_groups=[],
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            pass

    def ours() -> None:
        subprocess.run(
            [SVC, "admin", "backup", "--out", folder / "ours.db", "--force"],
            env=env, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )  # fmt: skip

    def copied() -> None:
        sqlite3(f".backup {theirs / 'copy.db'}")

    def by_hand() -> None:
        copied()
        sqlite3("PRAGMA integrity_check", "PRAGMA foreign_key_check", database=str(theirs / "copy.db"))
        subprocess.run(["sha256sum", theirs / "copy.db"], check=True, stdout=subprocess.DEVNULL)

    mine, other, whole = Side(ours), Side(copied), Side(by_hand)
    try:
        yield pair("backup of 500 MB | sqlite3 .backup", mine, other, bar=1.0, rounds=ROUNDS)
        yield pair("backup of 500 MB | sqlite3 .backup, check, digest", mine, whole, bar=1.0, rounds=ROUNDS)
        with writing(env):
            yield pair("backup beside a writer | sqlite3 .backup", mine, other, bar=1.0, rounds=2)
    finally:
        shutil.rmtree(folder)
        in_database(env, "DELETE FROM files WHERE size = 50000")
