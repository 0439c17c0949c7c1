"""Quotas of a running installation: policies, twenty starts at once, and the tables that people see."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from e2e.installation import Call, Outcome, Service
from e2e.surroundings import in_database, must, template_of

POLICY = "/api/admin/quotas/default"
COUNT = 20


@pytest.fixture
def quota(svc: Call) -> Iterator[Call]:
    """quota(max_running=2) -> everybody's policy; unlimited again afterwards."""

    def set_(**limits: object) -> Outcome:
        return must(svc("root", "api", "PUT", POLICY, "--body", json.dumps(limits)))

    yield set_
    set_()


@pytest.fixture(scope="module")
def small(fetchers: None, service: Service, registry: str) -> str:
    """A template of kim's for the small image."""
    return template_of("tse-kim", registry, service.env, "capacity-base")


@pytest.fixture
def some(kim: Call, small: str) -> Iterator[Call]:
    """some(count, *flags) -> the names of that many new workspaces of kim's, made a few at a time."""
    created: list[str] = []

    def make(count: int, *flags: str) -> list[str]:
        names = [f"crowd-{number}" for number in range(count)]
        created.extend(names)
        must(kim("ws", "setup", "--template", small, "--name", names[0], *flags))
        with ThreadPoolExecutor(4) as pool:
            for outcome in pool.map(
                lambda name: kim("ws", "create", "--template", small, "--name", name, *flags), names[1:]
            ):
                must(outcome)
        return names

    yield make
    for name in created:
        kim("ws", "stop", name)
        kim("ws", "delete", name, "--yes")


def test_twenty_starts_at_once_against_room_for_two(
    kim: Call, some: Call, quota: Call, service: Service
) -> None:
    names = some(COUNT)
    quota(max_running=2)
    with ThreadPoolExecutor(COUNT) as pool:
        outcomes = list(pool.map(lambda name: kim("ws", "start", name, "--json"), names))
    through = [name for name, outcome in zip(names, outcomes, strict=True) if outcome.code == 0]
    refused = [outcome.json()["error"] for outcome in outcomes if outcome.code]
    assert len(through) == 2, [outcome.err for outcome in outcomes]
    assert {error["code"] for error in refused} == {"quota_exceeded"}, refused
    assert all(error["details"]["limit"] == 2 and error["details"]["used"] == 2 for error in refused)
    rows = in_database(service.env, "SELECT name FROM workspaces WHERE status = 'running' ORDER BY name")
    assert [name for [name] in rows] == sorted(through)
    for name in set(names) - set(through):
        assert kim("ws", "get", name, "--json").json()["status"] == "stopped"

    other = next(name for name in names if name not in through)
    error = kim("ws", "start", other)
    assert error.code == 1
    hint = error.err.splitlines()[-1]
    assert hint in [f"hint: svc ws stop {name}" for name in through]
    must(kim(*hint.split()[2:]))  # the exact next command makes the room
    must(kim("ws", "start", other))


def test_a_workspace_without_a_limit_is_told_the_edit_that_lets_it_start(
    kim: Call, some: Call, quota: Call
) -> None:
    quota(max_cpu=1.5, max_memory_bytes=256 << 20)
    [name] = some(1)
    refused = kim("ws", "start", name, "--json")
    error = refused.json()["error"]
    assert error["code"] == "quota_exceeded"
    command, _, patch = error["hint"].partition(" <<< ")
    assert command == f"svc ws edit {name} --file -"
    assert json.loads(patch.strip("'")) == {"resources": {"cpu_limit": 1.5, "memory_bytes": 256 << 20}}
    must(kim(*command.split()[1:], stdin=patch.strip("'")))
    assert kim("ws", "get", name, "--json").json()["resources"]["cpu_limit"] == 1.5


def test_more_workspaces_than_the_quota_has(kim: Call, some: Call, quota: Call, small: str) -> None:
    some(2)
    quota(max_workspaces=2)
    refused = kim("ws", "create", "--template", small, "--name", "crowd-9", "--json")
    assert refused.json()["error"]["details"]["resource"] == "workspaces"
    assert "hint: svc ws list" in refused.err


def test_a_policy_of_one_s_own(svc: Call, kim: Call) -> None:
    body = json.dumps({"max_running": 1, "max_cpu": 2.5})
    must(svc("root", "api", "PUT", "/api/admin/quotas/guests", "--body", body))
    must(svc("root", "api", "PATCH", "/api/users/tse-kim", "--body", '{"quota": "guests"}'))
    try:
        assert kim("api", "GET", "/api/usage/me").json()["quota"]["name"] == "guests"
        assert svc("root", "api", "DELETE", "/api/admin/quotas/guests").code == 1
        assert kim("api", "GET", "/api/admin/quotas").json()["error"]["code"] == "admin_only"
    finally:
        must(svc("root", "api", "PATCH", "/api/users/tse-kim", "--body", '{"quota": null}'))
        must(svc("root", "api", "DELETE", "/api/admin/quotas/guests"))


def test_the_printed_tables(kim: Call, some: Call, quota: Call, svc: Call) -> None:
    [name] = some(1, "--cpus", "0.5", "--memory", "64m")
    before = kim("api", "GET", "/api/usage/me").json()
    quota(max_running=before["running"] + 3, max_cpu=4)
    rows = {line.split("\t")[0]: line.split("\t")[1:] for line in kim("ws", "capacity").out.splitlines()}
    assert set(rows) == {"workspaces", "running", "gpus", "cpus", "memory", "images"}
    assert rows["running"][1] == str(before["running"] + 3)
    assert int(rows["images"][0]) == before["image_bytes"] > 0
    assert float(rows["cpus"][3]) >= 1

    said = kim("ws", "recommend", "--template", "capacity-base", "--gpu-use-case", "light").out
    found = dict(line.split("\t") for line in said.splitlines())
    assert (found["gpus"], found["blocked_by"]) == ("0", "no_gpu")
    assert found["command"].startswith("svc ws setup --template capacity-base --name capacity-base-1 --cpus ")
    assert kim("ws", "recommend", "--template", "capacity-base", "--gpu-use-case", "all").code == 2

    assert kim("servers", "hardware").out == "driver\t\nmax_cuda\t\n"
    for user in ("root", "tse-kim"):
        assert svc(user, "servers", "hardware", "--json").json()["provider"] == "none"
    assert svc("root", "ws", "capacity").code == 1
    assert name in kim("ws", "list").out
