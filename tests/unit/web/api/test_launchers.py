"""Launchers and the monitor over HTTP: records as the schemas say."""

from __future__ import annotations

from typing import Any

from unit.serving import checked

PATH = "/api/workspaces/lab/launchers"


def test_start_and_stop(listeners: Any, lab: str) -> None:
    assert listeners.ask("ada", "POST", f"{PATH}/ada/start", json={}).get_json()["state"] == "started"
    assert listeners.ask("ada", "POST", f"{PATH}/ada/stop").get_json()["state"] == "stopped"
    [one] = listeners.ask("ada", "GET", PATH).get_json()["items"]
    assert (one["name"], one["port"], one["state"]) == ("ada", "ada", "stopped")
    checked(listeners.ask("ada", "POST", f"{PATH}/none/start"), 404, "not_found")
    checked(listeners.ask("ada", "POST", f"{PATH}/ada/start", json={"env": []}), 422, "validation_failed")


def test_logs(listeners: Any, lab: str) -> None:
    found = listeners.ask("ada", "GET", f"{PATH}/ada/logs?tail=3")
    assert found.get_json() == {"text": "hello\n", "truncated": False, "older_gone": False, "markers": []}
    assert listeners.far.calls[-1].args["tail"] == 3
    checked(listeners.ask("ada", "GET", f"{PATH}/ada/logs?tail=-1"), 422, "validation_failed")


def test_monitor(listeners: Any, lab: str) -> None:
    found = listeners.ask("ada", "GET", "/api/workspaces/lab/monitor").get_json()
    assert (found["source"], found["pids"], found["gpus"]) == ("cgroup", 2, [])
