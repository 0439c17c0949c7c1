"""`svc ws create` and `svc ws setup`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

POST = "POST /api/workspaces"
SETUP = "POST /api/workspaces/setup"
WATCH = "GET /api/operations/op-1"
RECORD = {
    "id": "ws-1",
    "name": "demo",
    "status": "stopped",
    "image_status": "ready",
    "template": {"name": "python"},
}


def operation(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "op-1", "kind": "setup", "status": status, "phase": "pulling", "progress": {}, **more}


def test_only_what_is_set_is_sent(service: Service, svc: Svc) -> None:
    service.answer(POST, RECORD, status=201)
    assert (
        svc("ws", "create", "--template", "python", "--name", "demo").out
        == "ws-1\tdemo\tstopped\tpython\tready\t\t\t\n"
    )
    assert service.last.json == {"template": "python", "name": "demo"}


def test_everything_that_can_be_set(service: Service, svc: Svc) -> None:
    service.answer(POST, RECORD, status=201)
    line = "--template tpl-1 --name demo --display-name D --cpus 1.5 --memory 32g --shm-size 64m --pids 100"
    line += " --gpu-count 2 --gpu-mode shared --env A=1 --env B=x=y --port web=8888 --port api=80"
    line += " --restart-on-boot"
    assert svc("ws", "create", *line.split()).code == 0
    assert service.last.json == {
        "template": "tpl-1",
        "name": "demo",
        "display_name": "D",
        "resources": {
            "cpu_limit": 1.5,
            "memory_bytes": 32 * 2**30,
            "shm_bytes": 64 * 2**20,
            "pids_limit": 100,
            "gpu_count": 2,
            "gpu_mode": "shared",
        },
        "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "x=y"}],
        "ports": [{"name": "web", "container_port": 8888}, {"name": "api", "container_port": 80}],
        "restart_on_boot": True,
    }


def test_people_are_told_what_comes_next(service: Service, svc: Svc) -> None:
    service.answer(POST, RECORD, RECORD | {"image_status": "missing"}, status=201)
    line = ["ws", "create", "--template", "python", "--name", "demo"]
    assert "svc ws start demo" in svc(*line, terminal=True).out
    assert "svc image pull python --wait" in svc(*line, terminal=True).out


def test_limits_that_this_host_cannot_apply_are_told(service: Service, svc: Svc) -> None:
    service.answer(POST, RECORD | {"limits_missing": ["memory_bytes"]}, status=201)
    done = svc("ws", "create", "--template", "python", "--name", "demo")
    assert (done.code, done.out) == (0, "ws-1\tdemo\tstopped\tpython\tready\t\t\t\n")
    assert (
        done.err == "svc: this host cannot apply: memory_bytes; for an administrator: sudo svc admin doctor\n"
    )


def test_warnings_are_printed_with_their_commands(service: Service, svc: Svc) -> None:
    warning = {"code": "image_user", "message": "runs as \x1b[2J", "hint": "svc template edit python"}
    service.answer(POST, RECORD | {"warnings": [warning, "odd"]}, status=201)
    created = svc("ws", "create", "--template", "python", "--name", "demo")
    assert created.code == 0
    assert created.err.startswith("svc: warning: runs as \\x1b[2J\nhint: svc template edit python\n")


def test_a_taken_name(service: Service, svc: Svc) -> None:
    service.refuse(POST, 409, "name_taken", "you already have one called demo")
    done = svc("ws", "create", "--template", "python", "--name", "demo")
    assert (done.code, done.err) == (1, "svc: you already have one called demo\n")


@pytest.mark.parametrize(
    "rest",
    ["", "--name x", "--template x", "--template x --name y --memory a", "--template x --name y --cpus 0",
     "--template x --name y --env A", "--template x --name y --gpu-mode all",
     "--template x --name y --port 80", "--template x --name y --port web=0", "--template a/b --name y"],
)  # fmt: skip
@pytest.mark.parametrize("verb", ["create", "setup"])
def test_wrong_usage(service: Service, svc: Svc, verb: str, rest: str) -> None:
    assert svc("ws", verb, *rest.split()).code == 2
    assert service.sent == []


def test_setup_waits_and_prints_the_workspace(service: Service, svc: Svc) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("running"), operation("succeeded", result={"workspace_id": "ws-1"}))
    service.answer("GET /api/workspaces/ws-1", RECORD)
    done = svc("ws", "setup", "--template", "python", "--name", "demo", "--memory", "8g")
    assert (done.code, done.out) == (0, "ws-1\tdemo\tstopped\tpython\tready\t\t\t\n")
    assert done.err == "pulling\n"
    assert service.requests[0].json == {
        "template": "python",
        "name": "demo",
        "resources": {"memory_bytes": 2**33},
    }


def test_setup_as_json_prints_the_operation(service: Service, svc: Svc) -> None:
    finished = operation("succeeded", result={"workspace_id": "ws-1"})
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, finished)
    printed = svc("ws", "setup", "--template", "python", "--name", "demo", "--json").out
    assert json.loads(printed) == {"operation": finished}


def test_a_setup_that_fails_says_why(service: Service, svc: Svc) -> None:
    error = {"code": "registry_not_allowed", "message": "not allowed", "hint": "svc image allowlist"}
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("failed", error=error))
    done = svc("ws", "setup", "--template", "python", "--name", "demo")
    assert (done.code, done.out) == (1, "")
    assert done.err == "svc: not allowed\nhint: svc image allowlist\n"


def test_a_setup_without_a_result_is_refused(service: Service, svc: Svc) -> None:
    service.answer(SETUP, {"operation": operation("queued")}, status=202)
    service.answer(WATCH, operation("succeeded", result=None))
    assert svc("ws", "setup", "--template", "python", "--name", "demo").code == 1


def test_the_same_set_up_is_joined(service: Service, svc: Svc) -> None:
    for kind in ("setup", "pull"):
        running = {"id": "op-1", "kind": kind, "status": "running"}
        service.refuse(
            SETUP, 409, "operation_in_progress", f"a {kind} is already in progress",
            details={"operation": running},
        )  # fmt: skip
    done = {"id": "op-1", "kind": "setup", "status": "succeeded", "result": {"workspace_id": "ws-1"}}
    service.answer("GET /api/operations/op-1", done)
    service.answer("GET /api/workspaces/ws-1", {"id": "ws-1", "name": "demo"})
    joined = svc("ws", "setup", "--template", "python", "--name", "demo")
    assert joined.code == 0
    assert joined.err == "svc: this set-up of demo is already in progress; waiting for its end\n"
    assert svc("ws", "setup", "--template", "python", "--name", "demo").code == 1


EXISTING = RECORD | {
    "template": {"id": "tpl-1", "name": "python"},
    "resources": {"cpu_limit": 4.0, "memory_bytes": 2**30, "gpu_count": 0},
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "ports": [{"name": "web", "container_port": 80, "host_port": 24700, "access": "owner"}],
    "restart_on_boot": False,
}
LINE = ["--template", "python", "--name", "demo", "--if-not-exists"]


@pytest.mark.parametrize(("verb", "path"), [("create", POST), ("setup", SETUP)])
def test_one_that_exists_as_asked_for_is_left_as_it_is(
    service: Service, svc: Svc, verb: str, path: str
) -> None:
    service.refuse(path, 409, "name_taken", "you already have one called demo")
    service.answer("GET /api/workspaces/demo", EXISTING)
    more = ["--memory", "1g", "--env", "B=2", "--port", "web=80", "--gpu-count", "0"]
    for line in (LINE, [*LINE, *more]):
        assert svc("ws", verb, *line) == (0, "ws-1\tdemo\tstopped\tpython\tready\t0\t\t\n", "")
    assert json.loads(svc("ws", verb, *LINE, "--json").out) == EXISTING


@pytest.mark.parametrize(("verb", "path"), [("create", POST), ("setup", SETUP)])
def test_another_one_of_that_name_is_refused(service: Service, svc: Svc, verb: str, path: str) -> None:
    service.refuse(path, 409, "name_taken", "you already have one called demo")
    service.answer("GET /api/workspaces/demo", EXISTING | {"template": {"id": "tpl-2", "name": "torch"}})
    more = ["--memory", "2g", "--env", "B=3", "--port", "web=81", "--port", "api=80", "--restart-on-boot"]
    done = svc("ws", verb, *LINE, *more)
    what = "template, resources.memory_bytes, restart_on_boot, env.B, ports.web, ports.api"
    assert done == (1, "", f"svc: demo exists, and is not what was asked for: {what} differ\n"
                           "hint: svc ws get demo\n")  # fmt: skip


def test_if_not_exists_makes_what_does_not_exist(service: Service, svc: Svc) -> None:
    service.answer(POST, RECORD, status=201)
    assert svc("ws", "create", *LINE).code == 0
    assert service.last.json == {"template": "python", "name": "demo"}
    service.refuse(SETUP, 409, "quota_exceeded", "no room")
    assert svc("ws", "setup", *LINE) == (1, "", "svc: no room\n")
