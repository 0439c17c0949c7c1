"""A database that cannot be used: the server says so and exits, at its start and later."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e.installation import STATE, SVC, Call, Service, run
from e2e.surroundings import in_database
from waiting import until


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def removed(path: Path) -> None:
    path.unlink()


def garbage(path: Path) -> None:
    path.write_bytes(os.urandom(300_000))


def halved(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // 4096 * 4096)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as database:
        database.execute("PRAGMA user_version = 99")
    database.close()
    for one in path.parent.glob("svc.db-*"):
        one.unlink()


def roots_own(path: Path) -> None:
    os.chown(path, 0, 0)
    path.chmod(0o600)


RESTORE = "stop the service, then: sudo svc admin restore PATH"
# Each with what the server says, its hint, and what `migrate` says.
CASES = {
    emptied: ("is empty", RESTORE, "Without a terminal this needs --yes"),
    removed: ("is missing", RESTORE, "Without a terminal this needs --yes"),
    garbage: ("file is not a database", RESTORE, "file is not a database"),
    halved: ("is malformed", RESTORE, "is malformed"),
    newer: ("is of a newer release", "install the newer release", "is of a newer release"),
    roots_own: ("belongs to root, not to svc", "sudo svc admin doctor --repair", "doctor --repair"),
}


@pytest.fixture
def database(service: Service) -> Iterator[Path]:
    """The database's path, whose content the test may spoil; the server does not run."""
    path = STATE / "data" / "svc.db"
    service.stop()
    in_database(service.env, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole, owner = path.read_bytes(), path.stat()
    for one in path.parent.glob("svc.db-*"):
        one.unlink()
    yield path
    service.stop()
    for one in path.parent.glob("svc.db-*"):
        one.unlink()
    (path.parent / "svc.db.head").unlink(missing_ok=True)
    path.write_bytes(whole)
    os.chown(path, owner.st_uid, owner.st_gid)
    path.chmod(0o660)
    service.start()


@pytest.mark.parametrize("spoil", CASES, ids=lambda spoil: spoil.__name__)
def test_the_server_exits_with_the_reason(
    service: Service, database: Path, spoil: Callable[[Path], None]
) -> None:
    """It started its children again and again, never said ready, and held the lock against `migrate`."""
    reason, hint, migrated = CASES[spoil]
    spoil(database)
    done = subprocess.run(
        [SVC, "server"], env=service.env, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == os.EX_CONFIG, done.stderr
    message, help_line = done.stderr.strip().splitlines()[-2:]
    assert message.startswith("svc: ")
    assert reason in message
    assert help_line.startswith(f"hint: {hint}")
    assert "started, pid" not in done.stderr, "no child was started"
    outcome = run("root", "admin", "migrate", env=service.env)
    assert migrated in outcome.out + outcome.err
    assert "in use" not in outcome.err


def test_a_database_that_is_spoiled_later(service: Service, database: Path, alice: Call) -> None:
    service.start()
    (worker,) = until(lambda: [one for one in service.members() if one.status["Name"] == "svc-worker"])
    for one in database.parent.glob("svc.db-*"):
        one.unlink()
    garbage(database)
    os.kill(worker.pid, signal.SIGKILL)
    supervisor = service.supervisor
    assert supervisor is not None
    until(lambda: supervisor.poll() is not None, 20)
    assert supervisor.returncode == os.EX_CONFIG
    said = service.tail(2)
    assert re.search(r"^svc: .*file is not a database$", said, re.MULTILINE), said
    assert "hint: stop the service, then: sudo svc admin restore PATH" in said
    service.supervisor = None
