"""A disk that fails, and a database that is damaged: codes of their own, degraded health, nothing worse."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import STATE, Call, Service
from e2e.processes.small_disks import fill, moved
from e2e.surroundings import in_database, must
from waiting import until

PAGE = 4096


def health(alice: Call) -> dict[str, Any]:
    return dict(alice("api", "GET", "/api/health").json())


@pytest.fixture
def failing_disk(service: Service, tmp_path: Path) -> Iterator[Path]:
    """The database on a disk whose writes the kernel answers with EIO once the result is full.

    It is a sparse file on a small file system; the result is the directory of the latter.
    """
    below = tmp_path / "below"
    below.mkdir()

    def mount(data: Path, size: int) -> None:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size + (40 << 20)}", "none", below], check=True)
        image = below / "image"
        with open(image, "wb") as file:
            file.truncate(4 * (size + (40 << 20)))
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-E", "nodiscard", image], check=True)
        subprocess.run(["mount", "-o", "loop,errors=continue", image, data], check=True)

    if not os.path.exists("/dev/loop-control"):
        pytest.skip("this host has no loop devices")
    try:
        with moved(service, mount):
            yield below
    finally:
        subprocess.run(["umount", "-l", below], check=False)


def test_errors_of_the_disk(failing_disk: Path, service: Service, alice: Call) -> None:
    """They were internal errors, and health said ok."""
    must(alice("token", "create", "--name", "before"))
    worker = service.named("svc-worker").pid
    fill(failing_disk)
    refused: dict[str, Any] = {}

    def is_refused() -> bool:
        answered = alice("api", "PATCH", "/api/users/tse-alice", "--body", '{"display_name": "A"}')
        refused.update(answered.json().get("error", {}))
        return answered.code != 0

    until(is_refused, 20, 0.1)
    assert (refused["code"], refused["retryable"]) == ("storage_failed", True), refused
    assert refused["hint"] == "sudo svc admin doctor"
    state = health(alice)
    assert (state["status"], state["db"]) == ("degraded", "storage_failed")
    assert alice("ws", "list").code == 0
    assert service.named("svc-worker").pid == worker, "the worker survives it"
    said = service.log.read_text(errors="replace")
    assert "Traceback" not in said[said.rfind("ready:") :]


@pytest.fixture
def damaged(service: Service) -> Iterator[int]:
    """The database with a page of zeros in place of an index's root; its number. Whole again afterwards."""
    path = STATE / "data" / "svc.db"
    service.stop()
    in_database(service.env, "PRAGMA wal_checkpoint(TRUNCATE)")
    whole = path.read_bytes()
    database = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    query = "SELECT rootpage FROM sqlite_schema WHERE name = 'operations_kind'"
    (page,) = database.execute(query).fetchone()
    database.close()
    with open(path, "r+b") as file:
        file.seek(PAGE * (page - 1))
        file.write(bytes(PAGE))
    service.start("/api/version")
    yield page
    service.stop()
    for name in ("svc.db-wal", "svc.db-shm"):
        (path.parent / name).unlink(missing_ok=True)
    path.write_bytes(whole)
    service.start()


def test_a_damaged_database_is_only_read(
    damaged: int, service: Service, alice: Call, svc: Call, template: str
) -> None:
    """It was served as healthy, and written to."""
    path = STATE / "data" / "svc.db"
    until(lambda: health(alice)["db"] == "database_damaged", 10)
    assert alice("ws", "list").code == 0
    refused = alice("ws", "create", "--template", template, "--name", "new")
    assert refused.code == 1
    assert "the database is damaged, and nothing is written to it" in refused.err
    assert "sudo svc admin doctor" in refused.err
    doctor = svc("root", "admin", "doctor")
    found = {line.split("\t")[0]: line for line in doctor.out.splitlines()}
    assert "sudo svc admin restore PATH" in found["database"]
    assert "sudo svc admin restore PATH" in found["database_disk"]
    service.stop()
    assert path.read_bytes()[PAGE * (damaged - 1) : PAGE * damaged] == bytes(PAGE), "not written over"
    service.start("/api/version")
    until(lambda: health(alice)["db"] == "database_damaged", 10)


def test_a_repaired_database_is_written_to_again(service: Service, alice: Call) -> None:
    until(lambda: health(alice)["status"] == "ok", 10)
    must(alice("token", "create", "--name", "after"))
    must(alice("token", "revoke", "after"))


@pytest.fixture
def older(service: Service, alice: Call) -> Iterator[bytes]:
    """The running database's bytes of a while ago; afterwards it is again as it was when the test began."""
    path = STATE / "data" / "svc.db"
    service.stop()
    in_database(service.env, "PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    service.start()
    must(alice("token", "create", "--name", "meanwhile"))
    must(alice("token", "revoke", "meanwhile"))
    os.kill(service.named("svc-worker").pid, signal.SIGKILL)  # the next one writes the log back at once
    until(lambda: path.read_bytes() != before and (path.parent / "svc.db-wal").stat().st_size == 0, 10)
    newest = path.read_bytes()
    yield before
    service.stop()
    for name in ("svc.db-wal", "svc.db-shm", "svc.db.head"):
        (path.parent / name).unlink(missing_ok=True)
    path.write_bytes(newest)
    service.start()


def test_an_older_copy_over_the_running_database(
    older: bytes, service: Service, alice: Call, svc: Call
) -> None:
    """Nobody noticed, the doctor neither."""
    with open(STATE / "data" / "svc.db", "r+b") as file:
        file.write(older)
        file.truncate()
    until(lambda: health(alice)["db"] == "database_damaged", 10)
    refused = alice("token", "create", "--name", "late")
    # The worker notices the writing, or its check the rows or the entries of an index that are gone.
    seen = "another program has written over its file|the newest changes are lost|missing from index"
    assert re.search(seen, refused.err)
    doctor = svc("root", "admin", "doctor")
    found = {line.split("\t")[0]: line for line in doctor.out.splitlines()}
    assert "to go on with what is left: sudo runuser -u svc -- rm " in found["database"]
