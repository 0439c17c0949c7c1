"""Browsers' connections over TCP: each is served, more than there are places wait, and all end at the end."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Iterator

import pytest
from unit.apps.stage import Stage, place_of
from unit.apps.test_connection import GET, call, echo, raw
from waiting import until

from svc.apps.gateway import Gateway
from svc.apps.seats import Bounds

MOST = 4


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Where browsers connect to."""
    with socket.create_server(("127.0.0.1", 0)) as made:
        yield made


@pytest.fixture
def stage(listener: socket.socket) -> Iterator[Stage]:
    """A gateway in a loop, before a program."""
    made = Stage(echo)
    gateway = made.ask(lambda: Gateway(made.loop, [listener], place_of, made, bounds=Bounds(total=MOST)))
    made.gateway = gateway  # type: ignore[attr-defined]
    yield made
    made.ask(gateway.close)
    made.close()


def connect(listener: socket.socket) -> socket.socket:
    """A browser's connection."""
    return socket.create_connection(listener.getsockname(), timeout=30)


def test_browsers_are_served(stage: Stage, listener: socket.socket) -> None:
    for _ in range(3 * MOST):
        with connect(listener) as client:
            assert call(client).status == 200
    assert {asked.address for asked in stage.asked} == {"127.0.0.1"}


def test_those_without_a_place_wait(stage: Stage, listener: socket.socket) -> None:
    begun = [connect(listener) for _ in range(MOST)]
    for client in begun:
        assert call(client).status == 200
    with connect(listener) as late:
        late.settimeout(0.3)
        late.sendall((GET + "\r\n").encode())
        with pytest.raises(TimeoutError):
            late.recv(1)
        begun.pop().close()
        late.settimeout(30)
        assert late.recv(65536).startswith(b"HTTP/1.1 200 ")
    for client in begun:
        client.close()
    until(lambda: not stage.ask(lambda: len(stage.gateway.connections)), 30)  # type: ignore[attr-defined]


def test_without_descriptors_it_waits_and_goes_on(stage: Stage, listener: socket.socket) -> None:
    with connect(listener) as first:
        assert call(first).status == 200
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        second = socket.socket()
        highest = max(int(name) for name in os.listdir("/proc/self/fd"))
        resource.setrlimit(resource.RLIMIT_NOFILE, (highest, hard))
        try:
            filled = _fill()
            second.settimeout(30)
            second.connect(listener.getsockname())
            for fd in filled:
                os.close(fd)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        with second:
            assert call(second).status == 200


def _fill() -> list[int]:
    filled = []
    while True:
        try:
            filled.append(os.dup(0))
        except OSError:
            return filled


def test_it_ends_what_is_under_way(listener: socket.socket) -> None:
    stage = Stage(raw(b"", until=b"never"))
    gateway = stage.ask(lambda: Gateway(stage.loop, [listener], place_of, stage))
    with connect(listener) as client:
        client.sendall((GET + "\r\n").encode())
        until(lambda: stage.program.threads, 30)
        stage.ask(gateway.close)
        client.settimeout(30)
        assert client.recv(1) == b""
    with connect(listener) as late:  # the listener is its caller's again
        late.settimeout(0.3)
        late.sendall((GET + "\r\n").encode())
        with pytest.raises(TimeoutError):
            late.recv(1)
        assert not stage.ask(lambda: gateway.connections)
    stage.close()


def test_an_end_of_the_sign_in_ends_its_connections(stage: Stage, listener: socket.socket) -> None:
    with connect(listener) as ada, connect(listener) as bob:
        assert call(ada).status == 200
        assert call(bob, Cookie="__Host-svc-app=bob").status == 200
        stage.ask(lambda: stage.gateway.end(["app-ada", "app-nobody"]))  # type: ignore[attr-defined]
        assert ada.recv(1) == b""
        assert call(bob, Cookie="__Host-svc-app=bob").status == 200


def test_a_crowd_of_strangers_leaves_room(listener: socket.socket) -> None:
    """More than a client may have before it opens an app: the oldest are closed, and its user comes in."""
    made = Stage(echo)
    gateway = made.ask(
        lambda: Gateway(made.loop, [listener], place_of, made, bounds=Bounds(strangers_of_client=5))
    )
    try:
        crowd = [connect(listener) for _ in range(50)]
        with connect(listener) as client:
            assert call(client).status == 200
            until(lambda: len(gateway.seats.strangers.get("127.0.0.1", ())) <= 5, 10, 0.01)
            more = [connect(listener) for _ in range(50)]
            assert call(client).status == 200, "who is let in is no stranger"
        for each in (*crowd, *more):
            each.close()
    finally:
        made.ask(gateway.close)
        made.close()
