"""Restarts and upgrades with real containers: what stays, what is replaced, and kills in the middle."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from depths import rounds
from e2e.installation import Call, Service, processes_of
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import must, new_template, podman, template_of
from waiting import until

ROUNDS = rounds(2, 8, 33)
USER = "tse-alice"
WAIT_S = 60  # for a row to be steady after a kill: the worker resolves it

Record = Callable[[str], dict[str, Any]]


@pytest.fixture
def lab(alice: Call, service: Service, registry: str) -> Iterator[str]:
    """A stopped workspace of a template of its own, which has its name; what it runs tells its revision."""
    name = f"up-{os.urandom(3).hex()}"
    template_of(USER, registry, service.env, name, command=["sleep", "900001"])
    must(alice("ws", "setup", "--template", name, "--name", name))
    yield name
    alice("ws", "stop", name)
    must(alice("ws", "delete", name, "--yes"))
    must(alice("template", "delete", name, "--yes"))


def edited(alice: Call, name: str, **patch: object) -> None:
    must(alice("template", "edit", name, "--file", "-", stdin=json.dumps(patch)))


def inside(alice: Call, name: str, script: str) -> str:
    return must(alice("ws", "exec", name, "--", "sh", "-c", script)).out


def runs(alice: Call, name: str) -> int:
    """The revision of which its container's command tells."""
    line = inside(alice, name, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    return int(line.partition("90000")[2][:1])


def test_a_restart_keeps_what_is_installed(alice: Call, lab: str, record: Record) -> None:
    must(alice("ws", "start", lab))
    inside(alice, lab, "echo installed > /marker")
    before = record(lab)
    must(alice("ws", "restart", lab))
    after = record(lab)
    assert (after["status"], after["status_reason"]) == ("running", None)
    assert after["started_at"] > before["started_at"]
    assert inside(alice, lab, "cat /marker") == "installed\n"
    must(alice("ws", "stop", lab))
    must(alice("ws", "restart", lab))
    assert record(lab)["status"] == "running"


def test_fifty_restarts_at_once(alice: Call, lab: str, record: Record) -> None:
    must(alice("ws", "start", lab))
    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(lambda _: alice("ws", "restart", lab, "--json"), range(50)))
    won = [one for one in outcomes if one.code == 0]
    assert won
    codes = {one.json()["error"]["code"] for one in outcomes if one.code}
    assert codes <= {"operation_in_progress", "too_many_requests"}
    assert record(lab)["status"] == "running"
    assert runs(alice, lab) == 1


def test_an_upgrade_that_keeps_the_container(alice: Call, lab: str, record: Record) -> None:
    must(alice("ws", "start", lab))
    inside(alice, lab, "echo installed > /marker")
    edited(alice, lab, env=[{"name": "COLOUR", "value": "green"}])
    refused = alice("ws", "upgrade", lab)
    assert refused.code == 1
    assert "only a stopped workspace is upgraded" in refused.err
    must(alice("ws", "stop", lab))
    shown = must(alice("ws", "upgrade", lab, "--dry-run")).out
    assert "env COLOUR: none -> green" in shown
    assert record(lab)["template"]["newer_revision"] == 2
    must(alice("ws", "upgrade", lab))
    assert record(lab)["template"]["revision"] == 2
    must(alice("ws", "start", lab))
    assert inside(alice, lab, "cat /marker; echo $COLOUR") == "installed\ngreen\n"


def test_an_upgrade_that_replaces_the_container(alice: Call, lab: str, record: Record) -> None:
    must(alice("ws", "start", lab))
    inside(alice, lab, f"echo installed > /marker; echo kept > /work/{lab}; echo said > /proc/1/fd/1")
    must(alice("ws", "stop", lab))
    edited(alice, lab, command=["sleep", "900002"])
    refused = alice("ws", "upgrade", lab)
    assert (refused.code, record(lab)["template"]["revision"]) == (1, 1)
    assert "what was installed in it is lost" in refused.err
    body = json.dumps({})
    assert alice("api", "POST", f"/api/workspaces/{lab}/upgrade", "--body", body).code == 1
    must(alice("ws", "upgrade", lab, "--yes"))
    listed = podman(USER, "ps", "-a", "--format", "{{.Names}}").out
    assert f"svc-{record(lab)['id']}\n" in listed
    assert "-next" not in listed
    must(alice("ws", "start", lab))
    assert runs(alice, lab) == 2
    assert inside(alice, lab, f"cat /work/{lab}; cat /marker 2>/dev/null || echo gone") == "kept\ngone\n"
    assert "said" in must(alice("ws", "logs", lab)).out


def test_an_image_that_was_pulled_again(
    alice: Call, service: Service, registry: str, shelf: Shelf, record: Record
) -> None:
    shelf.put("moving", {"version": b"1"})
    name = "moving"
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:moving"}
    new_template(USER, service.env, name, source, command=["sleep", "900001"])
    must(alice("ws", "setup", "--template", name, "--name", name))
    try:
        shelf.put("moving", {"version": b"2"})
        assert record(name)["newer_image"] is False
        must(alice("image", "pull", name, "--wait"))
        assert record(name)["newer_image"] is True
        used = must(alice("image", "overview", "--json")).json()["items"]
        uses = [
            (one["used_by"], one["newer_for"]) for one in used if name in (*one["used_by"], *one["newer_for"])
        ]
        assert sorted(uses) == [([], [name]), ([name], [])]
        must(alice("ws", "upgrade", name, "--yes"))
        must(alice("ws", "start", name))
        assert inside(alice, name, "cat /version") == "2"
        assert record(name)["newer_image"] is False
    finally:
        alice("ws", "stop", name)
        alice("ws", "delete", name, "--yes")
        alice("template", "delete", name, "--yes")


def test_what_runs_and_when_it_printed(alice: Call, lab: str, record: Record) -> None:
    must(alice("ws", "start", lab))
    inside(alice, lab, "echo said > /proc/1/fd/1")
    [use] = [
        one
        for one in must(alice("ws", "list", "--live", "--json")).json()["items"]
        if one["id"] == record(lab)["id"]
    ]
    assert use["memory_bytes"] > 0
    assert use["cpu_percent"] is not None
    line = until(
        lambda: must(alice("ws", "logs", lab, "--timestamps", "--tail", "1")).out.strip(), WAIT_S, 0.2
    )
    assert re.fullmatch(r"20[0-9]{2}-[0-9-]{5}T[0-9:.]+[+-][0-9:]{5} said", line)


def test_fifty_upgrades_at_once(alice: Call, lab: str, record: Record) -> None:
    edited(alice, lab, command=["sleep", "900002"])
    with ThreadPoolExecutor(50) as pool:
        outcomes = list(pool.map(lambda _: alice("ws", "upgrade", lab, "--yes", "--json"), range(50)))
    assert any(one.code == 0 for one in outcomes)
    codes = {one.json()["error"]["code"] for one in outcomes if one.code}
    assert codes <= {"operation_in_progress", "too_many_requests", "workspace_not_stopped"}
    assert record(lab)["template"]["revision"] == 2
    must(alice("ws", "start", lab))
    assert runs(alice, lab) == 2


def steady(alice: Call, name: str) -> dict[str, Any] | None:
    """The record, once the service answers and nobody works on the workspace."""
    found = alice("api", "GET", f"/api/workspaces/{name}")
    if found.code:
        return None
    record: dict[str, Any] = found.json()
    return record if record["status"] in ("stopped", "failed") else None


@pytest.mark.parametrize("victim", ["svc-unix", "agent"])
def test_killed_in_the_middle_it_is_the_old_one_or_the_new_one(
    alice: Call, lab: str, service: Service, victim: str
) -> None:
    """Either revision, and its container runs what the record says; whatever was killed when."""
    generator = random.Random(victim)
    newest, present = 1, 1
    for _ in range(ROUNDS):
        newest = newest % 9 + 1
        edited(alice, lab, command=["sleep", f"90000{newest}"], description=os.urandom(4).hex())
        call = threading.Thread(target=lambda: alice("ws", "upgrade", lab, "--yes", timeout=180))
        call.start()
        call.join(generator.uniform(0.05, 0.6))
        if victim == "agent":
            victims = [one.pid for one in processes_of(USER) if "svc_helper.agent" in one.args]
        else:
            victims = [one.pid for one in service.members() if one.status["Name"] == victim]
        for pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        call.join()
        record = until(lambda: steady(alice, lab), WAIT_S, 0.2)
        expected = {command_of(alice, lab, record["template"]["revision"])}
        until(lambda: alice("ws", "start", lab).code == 0, WAIT_S, 0.5)
        present = runs(alice, lab)
        assert {present} == expected
        must(alice("ws", "stop", lab))
    assert present in range(1, 10)
    must(alice("ws", "upgrade", lab, "--yes"))
    must(alice("ws", "start", lab))
    assert runs(alice, lab) == newest


def command_of(alice: Call, template: str, revision: int) -> int:
    """What a container of this revision runs."""
    found = must(alice("api", "GET", f"/api/templates/{template}/revisions/{revision}")).json()
    return int(found["command"][1][-1])
