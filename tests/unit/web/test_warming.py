"""A shell user's first request brings the agent up; nobody waits for it, and nobody's is asked again soon."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from unit.serving import make_template, make_workspace

from svc.db.connect import database
from svc.domain.accounts import users
from svc.domain.principal import Caller
from svc.web import warming
from svc.web.warming import AGAIN_S, AT_ONCE, Warming


@pytest.fixture
def warm(listeners: Any, monkeypatch: pytest.MonkeyPatch) -> Warming:
    made = Warming()
    monkeypatch.setitem(listeners.apps["unix"].extensions["svc"], "warming", made)
    return made


@pytest.fixture
def passed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[float], None]]:
    """Let seconds pass."""
    at = [1000.0]
    monkeypatch.setattr(warming, "CLOCK", lambda: at[0])
    yield lambda seconds: at.__setitem__(0, at[0] + seconds)


def until(fact: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not fact():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def ask(listeners: Any, who: str | None, method: str, path: str) -> int:
    """The status of one request whose response the server has sent."""
    return int(listeners.ask(who, method, path, buffered=True).status_code)


def idle(warm: Warming) -> bool:
    return warm.slots._value == AT_ONCE


def test_whatever_is_asked_first_asks_the_agent_once(
    listeners: Any, lab: str, warm: Warming, passed: Callable[[float], None]
) -> None:
    for _ in range(3):
        assert ask(listeners, "ada", "GET", "/api/workspaces") == 200
        until(lambda: idle(warm))
    assert [(call.verb.name, call.user, call.args) for call in listeners.far.asked()] == [
        ("ctr.inspect", "ada", {"id": lab})
    ]
    passed(AGAIN_S)
    assert ask(listeners, "ada", "GET", "/api/workspaces/none") == 404, "even what is refused"
    until(lambda: len(listeners.far.asked()) == 2)


def test_who_has_nothing_to_start_gets_no_agent(listeners: Any, lab: str, warm: Warming) -> None:
    ask(listeners, "bob", "GET", "/api/workspaces")
    ask(listeners, "stranger", "GET", "/api/workspaces")
    ask(listeners, None, "GET", "/api/version")
    until(lambda: idle(warm))
    assert listeners.far.asked() == []


def test_a_silent_agent_keeps_nobody_waiting(listeners: Any, lab: str, warm: Warming) -> None:
    listeners.far.answers["ctr.inspect"] = lambda _call: listeners.far.hold()
    template = make_template(users.find("bob").id, "bobs")  # type: ignore[union-attr]
    make_workspace(users.find("bob").id, template, "mine")  # type: ignore[union-attr]
    for who in ("ada", "bob"):
        assert ask(listeners, who, "GET", "/api/workspaces") == 200
    listeners.far.let_go()
    until(lambda: idle(warm))


def test_a_client_that_reads_to_the_end_does_not_wait_for_the_agent(
    listeners: Any, lab: str, people: dict[str, Any]
) -> None:
    """Its connection is the proof of the call, and is closed when its response is sent."""
    far = listeners.far
    far.answers["ctr.inspect"] = lambda _call: far.hold()
    ours, theirs = socket.socketpair()
    ada = people["ada"]
    with theirs:
        with ours:
            caller = Caller("peer", ada.id, "ada", 2001, False, "req-1", "", far.helper, peer=ours)
            Warming().begin(caller)
        until(far.asked)
        theirs.settimeout(10)
        assert theirs.recv(1) == b""
    far.let_go()


def test_an_agent_that_cannot_start_is_no_error_of_the_request(
    listeners: Any, lab: str, warm: Warming, capfd: pytest.CaptureFixture[str]
) -> None:
    listeners.far.answers["ctr.inspect"] = "unavailable"
    assert ask(listeners, "ada", "GET", "/api/workspaces") == 200
    until(lambda: idle(warm) and listeners.far.asked())
    assert capfd.readouterr().err == ""


def test_one_that_is_being_deleted_is_left_alone(listeners: Any, lab: str, warm: Warming) -> None:
    database.execute_sql("UPDATE workspaces SET status = 'deleting'")
    ask(listeners, "ada", "GET", "/api/workspaces")
    until(lambda: idle(warm))
    assert listeners.far.asked() == []
