"""A full disk: a clear refusal, nothing half-done, reading goes on; with room again all is well."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import STATE, Call, Service, until

ROOM = 6 * 1024 * 1024  # bytes, besides what the database takes already


@pytest.fixture
def small_disk(service: Service) -> Iterator[Path]:
    """The database on a small file system of its own, for one test."""
    data = STATE / "data"
    kept = STATE / "data.kept"
    service.stop()
    try:
        data.rename(kept)
        data.mkdir(mode=0o700)
        size = ROOM + sum(path.stat().st_size for path in kept.rglob("*"))
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", data], check=True)
        shutil.copytree(kept, data, dirs_exist_ok=True)
        subprocess.run(["chown", "-R", "svc:svc", data], check=True)
        service.start()
        yield data
    finally:
        service.stop()
        subprocess.run(["umount", "-l", data], check=False)
        shutil.rmtree(data, ignore_errors=True)
        kept.rename(data)
        service.start()


def fill(directory: Path) -> Path:
    """Take all the room that is left."""
    filler = directory / "filler"
    with open(filler, "wb", buffering=0) as file:
        for size in (65536, 4096, 512, 1):
            try:
                while True:
                    file.write(b"\0" * size)
            except OSError:
                continue
    return filler


def test_writes_are_refused_and_reads_go_on(small_disk: Path, alice: Call, template: str) -> None:
    before = alice("ws", "list", "--json").json()["total"]
    filler = fill(small_disk)
    refused = {}
    for number in range(40):  # the log of the database may have room left for a few
        created = alice(
            "api",
            "POST",
            "/api/workspaces",
            "--body",
            f'{{"name": "full{number}", "template": "{template}"}}',
        )
        if created.code != 0:
            refused = created.json()["error"]
            break
        before += 1
    assert refused.get("code") == "storage_full", refused
    assert alice("ws", "list", "--json").json()["total"] == before
    os.unlink(filler)
    assert alice("ws", "create", "--template", template, "--name", "room").code == 0
    assert alice("ws", "list", "--json").json()["total"] == before + 1


def test_a_start_is_refused_before_anything_runs(
    small_disk: Path, alice: Call, template: str, record: Callable[[str], dict[str, Any]]
) -> None:
    """ "No state without an exit": a row that cannot be written is not half-way anywhere."""
    assert alice("ws", "setup", "--template", template, "--name", "held").code == 0
    filler = fill(small_disk)
    try:
        refused: dict[str, Any] = {}
        for _ in range(40):  # the log of the database may have room left for a few
            answered = alice("api", "POST", "/api/workspaces/held/start", "--body", "{}")
            if answered.code != 0:
                refused = answered.json()["error"]
                break
            alice("ws", "stop", "held")
        assert refused.get("code") == "storage_full", refused
    finally:
        os.unlink(filler)
    until(lambda: record("held")["status"] in ("stopped", "running", "failed"), 20, 0.3)
    until(lambda: alice("ws", "start", "held").code == 0, 20, 0.5)
    assert alice("ws", "exec", "held", "--", "true").code == 0
    assert alice("ws", "stop", "held").code == 0
    assert alice("ws", "delete", "held", "--yes").code == 0
