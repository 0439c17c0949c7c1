"""What running workspaces use: one measurement for all who look, and never by a list."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from unit.serving import CONTAINER, FarEnd, make_template, make_workspace

from svc import errors
from svc.db.connect import close_database
from svc.domain.pages import Page
from svc.domain.principal import Caller
from svc.domain.workspaces import live_use, workspaces

LAUNCHER = {"name": "web", "title": "", "command": ["x"], "env": [], "port": "web", "autostart": False}
STARTED = {"name": "web", "state": "started", "exit_code": None, "started_at": None, "finished_at": None}
IDLE = {"exists": True, "status": "stopped"}


class Clock:
    """Seconds that only the test moves."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(live_use, "time", made)
    return made


@pytest.fixture
def look(ada: Caller, clock: Clock) -> Callable[[], list[dict[str, Any]]]:
    """What a fresh process says."""
    measurements = live_use.Measurements()
    return lambda: measurements.of(ada)


@pytest.fixture
def lab(ada: Caller, far: FarEnd) -> str:
    """A running workspace of ada's, with a launcher that serves a port."""
    ports = [{"name": "web", "container_port": 80, "access": "owner"}]
    template = make_template(ada.user_id, "app", launchers=[LAUNCHER], ports=ports)
    far.answers["launcher.list"] = {"launchers": [STARTED]}
    return make_workspace(ada.user_id, template, status="running", container_id=CONTAINER)


Look = Callable[[], list[dict[str, Any]]]


def test_cpu_is_known_from_the_second_measurement_on(far: FarEnd, lab: str, look: Look, clock: Clock) -> None:
    [first] = look()
    assert (first["id"], first["cpu_percent"], first["memory_bytes"]) == (lab, None, 4096)
    assert first["launchers"] == [{"name": "web", "state": "started", "exit_code": None}]
    clock.seconds += 4
    far.answers["ctr.stats"] |= {"cpu_usec": 1000 + 2_000_000}
    assert look()[0]["cpu_percent"] == 50.0
    clock.seconds += 4
    far.answers["ctr.stats"] |= {"cpu_usec": 5}
    assert look()[0]["cpu_percent"] is None


def test_all_who_look_share_one(far: FarEnd, lab: str, look: Look, clock: Clock) -> None:
    found: list[Any] = []

    def tab() -> None:
        found.append(look())
        close_database()

    threads = [threading.Thread(target=tab) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20
    assert far.verbs() == ["ctr.stats", "launcher.list"]
    clock.seconds += live_use.KEPT_S
    look()
    assert far.verbs() == ["ctr.stats", "launcher.list"] * 2


def test_a_list_asks_nobody(ada: Caller, far: FarEnd, lab: str) -> None:
    workspaces.page_of(ada, Page())
    workspaces.get(ada, "lab")
    assert far.verbs() == []


@pytest.mark.parametrize("answer", [None, "timeout", "unavailable"])
def test_a_silent_agent_is_waited_for_once(
    far: FarEnd, lab: str, look: Look, ada: Caller, answer: Any
) -> None:
    make_workspace(ada.user_id, "tpl-00000app"[:12], "other", status="running", container_id=CONTAINER)
    far.answers["ctr.stats"] = answer
    assert [one["memory_bytes"] for one in look()] == [None, None]
    assert far.verbs() == ["ctr.stats"]


@pytest.mark.parametrize(
    "change",
    [
        {"cpu_usec": -1},
        {"cpu_usec": "1"},
        {"cpu_usec": 2**80},
        {"memory_bytes": None},
        {"memory_bytes": True},
    ],
)
def test_what_an_agent_may_say(far: FarEnd, lab: str, look: Look, change: dict[str, Any]) -> None:
    far.answers["ctr.stats"] |= change
    [one] = look()
    assert (one["cpu_percent"], one["memory_bytes"], one["launchers"]) == (None, None, [])


def test_one_that_has_ended(far: FarEnd, lab: str, look: Look) -> None:
    far.answers["ctr.stats"] = "not_running"
    assert look()[0]["memory_bytes"] is None


def test_another_users_are_not_there(bob: Caller, far: FarEnd, lab: str) -> None:
    assert live_use.listing(bob)["items"] == []
    assert far.verbs() == []


def test_the_record_has_the_url_and_the_last_error(ada: Caller, far: FarEnd, template: str) -> None:
    ports = [{"name": "web", "container_port": 80, "access": "owner"}]
    make_template(
        ada.user_id, "app", launchers=[LAUNCHER, LAUNCHER | {"name": "x", "port": None}], ports=ports
    )
    record = workspaces.create(ada, {"name": "lab", "template": "app"})
    port = record["ports"][0]["host_port"]
    assert [one["url"] for one in record["launchers"]] == [f"http://127.0.0.1:{port}", None]
    assert record["last_error"] is None
    far.answers |= {"ctr.start": "failed", "ctr.inspect": IDLE}
    with pytest.raises(errors.EngineFailed):
        workspaces.start(ada, "lab")
    found = workspaces.get(ada, "lab")["last_error"]
    assert (found["code"], set(found)) == ("engine_failed", {"code", "message", "at"})
    del far.answers["ctr.inspect"]
    far.answers["ctr.start"] = {"container_id": CONTAINER, "pid": 5, "started_at": None}
    assert workspaces.start(ada, "lab")["last_error"] is None
