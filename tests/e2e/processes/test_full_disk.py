"""A full disk: a clear refusal, nothing half-done, what gives back goes on; with room again all is well."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e.installation import Call, Service, processes_of
from e2e.processes.small_disks import fill, moved, tmpfs
from e2e.surroundings import must
from waiting import until

Record = Callable[[str], dict[str, Any]]


def names(alice: Call) -> set[str]:
    return {each["name"] for each in must(alice("ws", "list", "--json")).json()["items"]}


@pytest.fixture
def small_disk(service: Service, alice: Call) -> Iterator[Path]:
    """The database on a small file system of its own, for one test; its reserve is there.

    Its workspaces are deleted before it is: nobody would know of their containers afterwards.
    """
    with moved(service, tmpfs) as data:
        until(lambda: (data / "svc.db.reserve").exists())
        before = names(alice)
        yield data
        for name in names(alice) - before:
            must(alice("ws", "delete", name, "--yes"))


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
    small_disk: Path, alice: Call, template: str, record: Record
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


def health(alice: Call) -> dict[str, Any]:
    return dict(alice("api", "GET", "/api/health").json())


def test_what_gives_back_works_without_room(
    small_disk: Path, alice: Call, svc: Call, template: str, record: Record
) -> None:
    """It was refused with everything else, so that nobody could free anything."""
    for name in ("held", "idle"):
        must(alice("ws", "setup", "--template", template, "--name", name))
    must(alice("ws", "start", "held"))
    must(alice("token", "create", "--name", "spare"))
    filler = fill(small_disk)
    state = health(alice)
    assert (state["status"], state["db"], state["error"]["code"]) == (
        "degraded",
        "storage_full",
        "storage_full",
    )
    assert alice("ws", "list").code == 0
    assert alice("fs", "ls", "work").code == 0
    must(alice("ws", "stop", "held"))
    must(alice("ws", "delete", "held", "--yes"))
    must(alice("token", "revoke", "spare"))
    assert (small_disk / "svc.db.reserve").stat().st_size == 0
    refused = alice("ws", "create", "--template", template, "--name", "more")
    assert refused.code == 1
    assert "stopping and deleting workspaces still work" in refused.err
    assert "database_disk" in svc("root", "admin", "doctor").out
    must(alice("ws", "delete", "idle", "--yes"))
    for _ in range(100):  # nobody uses up what is kept for others
        if "wait a minute" in alice("fs", "rm", "work/absent", "--yes").err:
            break
    else:
        pytest.fail("one user used the reserve without a bound")
    os.unlink(filler)
    until(lambda: health(alice)["status"] == "ok", 40, 0.5)
    until(lambda: (small_disk / "svc.db.reserve").stat().st_size > 0, 40, 0.5)
    must(alice("ws", "create", "--template", template, "--name", "more"))
    found = svc("root", "admin", "doctor").out
    assert "intact" in next(line for line in found.splitlines() if line.startswith("audit_chain"))


def test_a_container_that_ends_is_recorded(
    small_disk: Path, alice: Call, template: str, record: Record
) -> None:
    must(alice("ws", "setup", "--template", template, "--name", "held"))
    must(alice("ws", "start", "held"))
    filler = fill(small_disk)
    for one in processes_of("tse-alice"):
        if one.args == "sleep infinity":
            os.kill(one.pid, signal.SIGKILL)
    until(lambda: record("held")["status"] == "stopped", 30, 0.3)
    os.unlink(filler)
    must(alice("ws", "delete", "held", "--yes"))
