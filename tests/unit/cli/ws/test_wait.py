"""`svc ws wait`: conditions, exit codes, and what cannot come any more."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fake_service import Service, Svc

ONE = "GET /api/workspaces/demo"
LAUNCHERS = "GET /api/workspaces/demo/launchers"


def record(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "ws-1", "name": "demo", "status": status, "exit_code": None} | more


def launcher(state: str, **more: Any) -> dict[str, Any]:
    fields = {"name": "etl", "state": state, "started_at": "2026-01-01T00:00:00Z", "exit_code": None} | more
    return {"items": [{"name": "web", "state": "started"}, fields]}


def test_until_it_is_stopped(service: Service, svc: Svc) -> None:
    service.answer(ONE, record("running"), record("stopping"), record("stopped", exit_code=3))
    assert svc("ws", "wait", "demo") == (0, "ws-1\tdemo\tstopped\t\t\t\t\t\n", "")
    assert svc("ws", "wait", "demo", "--exit-status").code == 3
    assert json.loads(svc("ws", "wait", "demo", "--json").out) == record("stopped", exit_code=3)
    assert svc("ws", "wait", "demo", terminal=True).out == "demo is stopped.\n"


def test_a_failed_one_has_ended_without_a_code(service: Service, svc: Svc) -> None:
    service.answer(ONE, record("failed"))
    assert svc("ws", "wait", "demo").code == 0
    assert svc("ws", "wait", "demo", "--exit-status").code == 1


def test_until_it_runs(service: Service, svc: Svc) -> None:
    service.answer(ONE, record("stopped"), record("starting"), record("running"))
    assert svc("ws", "wait", "demo", "--for", "running", "--exit-status").code == 0
    service.answer(ONE, record("failed", status_reason="engine_error"))
    done = svc("ws", "wait", "demo", "--for", "running")
    assert done == (0, "ws-1\tdemo\trunning\t\t\t\t\t\n", ""), "the first answer is of before"
    assert svc("ws", "wait", "demo", "--for", "running") == (
        1, "", "svc: demo has failed: engine_error\nhint: svc ws get demo\n"
    )  # fmt: skip


def test_until_a_launcher_has_ended(service: Service, svc: Svc) -> None:
    service.answer(ONE, record("running"))
    service.answer(LAUNCHERS, launcher("stopped", started_at=None), launcher("started"))
    service.answer(LAUNCHERS, launcher("exited", exit_code=7))
    line = ["ws", "wait", "demo", "--for", "launcher=etl"]
    assert svc(*line, terminal=True) == (0, "etl is exited.\n", "")
    assert svc(*line, "--exit-status") == (7, "", "")
    assert json.loads(svc(*line, "--json").out) == launcher("exited", exit_code=7)


def test_a_launcher_that_will_not_end(service: Service, svc: Svc) -> None:
    service.answer(ONE, record("stopped"))
    service.answer(LAUNCHERS, launcher("stopped", started_at=None))
    done = svc("ws", "wait", "demo", "--for", "launcher=etl")
    assert (done.code, done.err) == (
        1, "svc: etl was not started, and demo does not run\nhint: svc ws start demo\n"
    )  # fmt: skip
    done = svc("ws", "wait", "demo", "--for", "launcher=nope")
    assert (done.code, done.err) == (1, "svc: demo has no launcher nope\nhint: svc ws launchers demo\n")


@pytest.mark.parametrize(("more", "code"), [([], 1), (["--exit-status"], 124)])
def test_a_timeout(service: Service, svc: Svc, more: list[str], code: int) -> None:
    service.answer(ONE, record("running"))
    done = svc("ws", "wait", "demo", "--timeout", "1", *more)
    assert done == (code, "", "svc: demo was not stopped within 1 seconds\n")


def test_a_restart_of_the_service_is_waited_for(service: Service, svc: Svc) -> None:
    service.refuse(ONE, 503, "maintenance", "the service is stopping", retryable=True)
    service.raw(ONE, b"")
    service.answer(ONE, record("stopped"))
    assert svc("ws", "wait", "demo").code == 0
    service.refuse("GET /api/workspaces/gone", 404, "not_found", "no workspace gone")
    assert svc("ws", "wait", "gone") == (1, "", "svc: no workspace gone\n")


def test_what_is_no_condition(svc: Svc) -> None:
    for wrong in ("started", "launcher=", "launcher=a/b", ""):
        assert svc("ws", "wait", "demo", "--for", wrong).code == 2
