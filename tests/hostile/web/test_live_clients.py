"""Clients of terminals, of commands with input and of events that never read, flood, or come in thousands."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from e2e.installation import Call, Service, process, processes_of
from e2e.surroundings import must
from hostile.attackers import live
from hostile.faults import attaches
from hostile.test_hostile_agent import figures, lab, named
from waiting import until

from svc.websocket import BINARY, PING, frame

__all__ = ["lab"]  # the fixture

USER = "tsz-mallory"
Unmoved = Callable[[], float]
STREAMS_PER_USER = 64


@pytest.fixture
def listener(service: Service, mallory: Call, lab: str) -> Iterator[int]:
    """The process of the host socket; Mallory's terminals are closed at the end."""
    yield named(service, "unix")
    listed = must(mallory("ws", "shell", lab, "--list", "--json")).json()["items"]
    for row in listed:
        mallory("ws", "shell", lab, "--close", row["id"])


def cpu_s(pid: int) -> float:
    """The processor time that a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- commands with input ------------------------------------------------------------------------


@pytest.mark.parametrize("begun", [False, True])
def test_pings_that_nobody_wants_answered(
    service: Service, listener: int, lab: str, unmoved: Unmoved, begun: bool
) -> None:
    """Each is to be answered with what it says: to a client that never reads."""
    resident = figures(listener)[2]
    with live.piped(service, USER, lab) as one:
        if begun:
            one.send({"type": "start", "command": ["cat"]})
            one.send(b"begun")
            assert one.next() == (BINARY, b"\x01begun")
        assert one.flood(frame(PING, bytes(125), mask=True) * 500, 64 << 20) < 16 << 20
        assert figures(listener)[2] - resident < 16_000
        assert unmoved() < 2


def test_output_that_nobody_reads(service: Service, listener: int, lab: str) -> None:
    """Of a command that has ended: it waits, and costs nothing."""
    with ExitStack() as held:
        for _ in range(3):
            one = held.enter_context(live.piped(service, USER, lab))
            one.send({"type": "start", "command": ["head", "-c", "1500000", "/dev/zero"]})
        until(lambda: not [one for one in processes_of(USER) if "1500000" in one.args], 30)
        before = cpu_s(listener)
        time.sleep(2)
        assert cpu_s(listener) - before < 1


def test_commands_that_are_never_named(service: Service, listener: int, lab: str, unmoved: Unmoved) -> None:
    with ExitStack() as held:
        for _ in range(12):
            assert held.enter_context(live.piped(service, USER, lab)).status == 101
        assert unmoved() < 2


# --- terminals ----------------------------------------------------------------------------------


def test_floods_of_all_kinds_from_all_places(
    service: Service, listener: int, lab: str, unmoved: Unmoved
) -> None:
    """Pings, empty messages, sizes, keys: on as many connections as a user has."""
    size = b'\x81\xa5\0\0\0\0{"type":"resize","cols":80,"rows":24}'
    floods = [
        frame(PING, b"", mask=True) * 5000, frame(BINARY, b"", mask=True) * 5000, size * 1000,
        frame(BINARY, os.urandom(60_000), mask=True),
    ]  # fmt: skip
    resident = figures(listener)[2]
    deaf = ("sh", "-c", "stty raw -echo; sleep 600")
    with ExitStack() as held:
        first = held.enter_context(live.viewer(service, USER, lab, "", *deaf))
        message = first.next()
        assert message is not None
        terminal = json.loads(message[1])["terminal"]["id"]
        viewers = [held.enter_context(live.viewer(service, USER, lab, terminal)) for _ in range(7)]
        ends_at = time.monotonic() + 3
        while time.monotonic() < ends_at:
            for number, one in enumerate(viewers):
                content = floods[number % len(floods)]
                one.flood(content, len(content), 0.02)
        assert unmoved() < 2
        assert figures(listener)[2] - resident < 40_000


def test_a_shell_that_prints_without_end_to_all_who_look(
    service: Service, listener: int, lab: str, unmoved: Unmoved
) -> None:
    resident = figures(listener)[2]
    with ExitStack() as held:
        first = held.enter_context(live.viewer(service, USER, lab, "", "yes"))
        message = first.next()
        assert message is not None
        terminal = json.loads(message[1])["terminal"]["id"]
        viewers = [held.enter_context(live.viewer(service, USER, lab, terminal)) for _ in range(7)]
        ends_at = time.monotonic() + 2
        while time.monotonic() < ends_at:  # four read as fast as they can, the others never
            for one in viewers[:4]:
                assert one.next() is not None
        assert unmoved() < 2
        assert figures(listener)[2] - resident < 20_000
        assert attaches.resident_kib(attaches.shim_of(USER)) < 80_000


def test_what_is_no_terminal(service: Service, mallory: Call, listener: int, lab: str) -> None:
    """An error of the caller's, not a fault of the service."""
    size = service.log.stat().st_size
    for name in ("t-1", "t-ABCDEF", "%1b%5B2J", "%00", "x" * 3000, "t-000000%0a"):
        said = mallory("api", "DELETE", f"/api/workspaces/{lab}/terminals/{name}")
        assert '"not_found"' in said.out + said.err, (name, said)
        assert "\x1b" not in said.out + said.err
    for name in ("t-1", "t-000000"):
        with live.viewer(service, USER, lab, name) as one:
            assert one.status in (404, 422)
    with open(service.log, "rb") as log:
        log.seek(size)
        assert b"malformed" not in log.read()


def test_attaches_leave_nothing(service: Service, listener: int, lab: str) -> None:
    """A few of them; `tests/run release -- attaches 10000` has many."""
    lines, wrong = attaches.attach(service, USER, lab, listener, 200)
    assert wrong == [], lines


# --- events -------------------------------------------------------------------------------------


def test_readers_of_events_that_never_read(
    service: Service, mallory: Call, alice: Call, alices: str, listener: int, lab: str
) -> None:
    """From the oldest event on, on as many connections as a user has; and others get theirs."""
    resident = figures(listener)[2]
    with ExitStack() as held:
        readers = [
            held.enter_context(live.events(service, USER, "?after=0")) for _ in range(STREAMS_PER_USER)
        ]
        assert {one.status for one in readers} == {200}
        with live.events(service, USER) as more:
            assert more.status == 429
        watching = held.enter_context(live.events(service, "tsz-alice"))
        assert watching.status == 200
        seen = watching.early
        while b"id: " not in seen:  # where it begins
            seen += watching.sock.recv(65536)
        must(alice("ws", "stop", alices))
        must(alice("ws", "start", alices))
        while b'"to": "running"' not in seen:
            part = watching.sock.recv(65536)
            assert part
            seen += part
        assert figures(listener)[2] - resident < 40_000
    assert process(listener) is not None
