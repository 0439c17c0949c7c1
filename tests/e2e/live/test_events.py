"""Events at real clients: in order, once, over restarts; many streams, silent readers, the stop."""

from __future__ import annotations

import contextlib
import json
import subprocess
import threading
from http.client import HTTPException
from typing import Any

import pytest
from depths import rounds
from e2e import files
from e2e.files import Endpoint
from e2e.installation import PASSWORD, SVC, Call, Service, run
from e2e.live.event_streams import Reader
from e2e.surroundings import make_accounts, must, template_of
from waiting import until

CHANGES = rounds(300, 1000, 1000)
READ_AT_ONCE = CHANGES // 20  # then the client hangs up and comes back
STREAMS = 200


@pytest.fixture(scope="module")
def template(service: Service, registry: str) -> str:
    """A template of vera's, of whom and of wim nothing but these tests is to be seen; its name."""
    make_accounts(service.env, {"tse-vera": PASSWORD.strip(), "tse-wim": PASSWORD.strip()})
    return template_of("tse-vera", registry, service.env, "watched")


@pytest.fixture
def vera(svc: Call) -> Call:
    """vera(*argv) -> Outcome."""
    return lambda *argv, **more: svc("tse-vera", *argv, **more)


@pytest.fixture
def listener(template: str, service: Service) -> Endpoint:
    """The host socket, as vera."""
    return files.socket_of("tse-vera", service.env)


def change(listener: Endpoint, template: str, number: int) -> None:
    """One change of a template; when the service is away, once it is back."""

    def changed() -> bool:
        with contextlib.suppress(OSError, HTTPException):
            path, text = f"/api/templates/{template}", f"change {number}"
            if listener.ask("GET", path).json().get("description") == text:
                return True  # by a request whose answer was lost
            return listener.ask("PATCH", path, {"description": text}).status == 200
        return False

    until(changed, 60)


def test_changes_come_in_order_and_once(service: Service, listener: Endpoint, template: str) -> None:
    reader = Reader(listener, "/api/events?type=template.updated")
    reader.begin()
    seen: list[dict[str, Any]] = []

    def read() -> None:
        while len(seen) < CHANGES:
            seen.extend(reader.some(min(READ_AT_ONCE, CHANGES - len(seen))))

    reading = threading.Thread(target=read)
    reading.start()
    for number in range(CHANGES):
        if number in (CHANGES // 3, 2 * CHANGES // 3):
            with service.stopped():
                pass
        change(listener, template, number)
    reading.join(120)
    assert not reading.is_alive()
    ids, revisions = [record["id"] for record in seen], [record["data"]["revision"] for record in seen]
    assert ids == sorted(set(ids))
    assert revisions == list(range(revisions[0], revisions[0] + CHANGES))
    assert {(record["actor"]["user"], record["actor"]["via"]) for record in seen} == {("tse-vera", "socket")}
    assert reader.connections >= 20


def test_the_command_prints_what_happens_and_survives_a_restart(
    service: Service, vera: Call, template: str
) -> None:
    following = subprocess.Popen(
        ["runuser", "-u", "tse-vera", "--", SVC, "events", "--follow", "--after", "0", "--json"],
        env=service.env, stdout=subprocess.PIPE, text=True, cwd="/",
    )  # fmt: skip
    assert following.stdout is not None

    def next_of(kind: str) -> dict[str, Any]:
        assert following.stdout is not None
        while True:
            record: dict[str, Any] = json.loads(following.stdout.readline())
            if record["type"] == kind:
                return record

    try:
        must(vera("template", "disable", template))
        assert next_of("template.disabled")["subject"]["name"] == template
        with service.stopped():
            pass
        must(vera("template", "enable", template))
        record = next_of("template.enabled")
    finally:
        following.terminate()
        following.communicate()
    assert record["actor"] == {"user": "tse-vera", "via": "socket"}
    listed = must(vera("events", "--json", "--type", "template.enabled")).json()["items"]
    assert record in listed


def test_commands_of_root_are_events_too(service: Service, listener: Endpoint) -> None:
    """`svc admin` writes the database itself; its commit wakes the listeners."""
    reader = Reader(listener, "/api/events?type=capacity.changed")
    with reader.connected() as answer:
        while not answer.readline().startswith(b"id: "):
            pass
        must(run("root", "admin", "quota", "set", "events-test", "--running", "3", env=service.env))
        record = next(reader.events(answer))
    must(run("root", "admin", "quota", "delete", "events-test", "--yes", env=service.env))
    assert record["actor"]["via"] == "admin"


def test_others_events_stay_theirs(service: Service, template: str) -> None:
    of_wim = files.socket_of("tse-wim", service.env)
    assert template not in of_wim.ask("GET", "/api/events/history?limit=200").body.decode()
    everything = files.socket_of("root", service.env).ask("GET", "/api/events/history?all=true&limit=200")
    mine = [item for item in everything.json()["items"] if item["owner"] == "tse-vera"]
    assert mine
    assert {item["data"] is None for item in mine if item["type"].startswith("template.")} == {True}


@pytest.mark.depth("merge", "a crowd of two hundred streams")
def test_two_hundred_streams_that_nobody_reads(service: Service, vera: Call, template: str) -> None:
    """The service answers as ever, and its stop says so to each and is quick."""
    users = ("tse-vera", "tse-wim")
    listeners = [files.socket_of(user, service.env) for user in users]
    listeners += [files.session_of(user, service.env, PASSWORD) for user in users]
    with contextlib.ExitStack() as held:
        answers = []
        for number in range(STREAMS):
            answer = held.enter_context(listeners[number % 4].begun("/api/events"))
            assert answer.status == 200
            answers.append(answer)
        assert vera("api", "GET", "/api/health").code == 0
        assert must(vera("ws", "list")).code == 0
        for number in range(50):
            change(listeners[0], template, number + CHANGES)
        assert vera("api", "GET", "/api/health").code == 0
        service.stop()
        for answer in answers:
            assert b"event: restarting" in answer.read()
    service.start()
