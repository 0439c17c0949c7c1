"""Ports through the installed program: a real HTTP and WebSocket server on the container's own loopback."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Callable, Iterator

import pytest
from e2e import served
from e2e.installation import Call, Service
from e2e.registries import REPOSITORY, Shelf
from e2e.surroundings import must, new_template
from waiting import until

NUMBERS = itertools.count(1)
LAUNCHER = {"name": "web", "command": ["python3", "/app/server.py"], "port": "http", "autostart": True}


@pytest.fixture(scope="module")
def app(service: Service, registry: str, shelf: Shelf) -> str:
    """Alice's template of a program like Jupyter, which starts with the workspace; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:{served.put(shelf)}"}
    ports = [{"name": "http", "container_port": 8888}]
    new_template("tse-alice", service.env, "app", source, ports=ports, launchers=[LAUNCHER])
    return "app"


@pytest.fixture
def lab(alice: Call, app: str) -> Iterator[str]:
    """A running workspace of it, whose program answers; its name."""
    name = f"app-{next(NUMBERS)}"
    must(alice("ws", "setup", "--template", app, "--name", name))
    must(alice("ws", "start", name))
    yield name
    alice("ws", "stop", name)
    alice("ws", "delete", name, "--yes")


@pytest.fixture
def url(alice: Call, lab: str) -> Callable[..., str]:
    """url(port) -> where it is, as `svc ws ports` says, once the program answers there."""

    def find(port: str = "http") -> str:
        rows = must(alice("ws", "ports", lab, "--json")).json()["items"]
        row = next(row for row in rows if row["name"] == port)
        assert row["state"] == "open", row
        until(lambda: served.answers(row["url"]), 30, 0.1)
        return str(row["url"])

    return find


def test_a_port_of_the_template_leads_to_the_program(lab: str, url: Callable[..., str]) -> None:
    at = url()
    assert served.call(at, "/lab") == b"hello from /lab"
    big = os.urandom(4 << 20)
    assert served.call(at, "/echo", big) == big
    socket_ = served.Socket(at)
    for size in (0, 1, 125, 126, 70_000, 1 << 20):
        message = os.urandom(size)
        assert socket_.echo(message) == message
    socket_.close()


def test_a_port_is_added_to_a_running_workspace_and_removed(
    alice: Call, lab: str, url: Callable[..., str]
) -> None:
    """ "Adds a named port": live, for a program that listens on the container's 127.0.0.1 only."""
    url()
    added = must(alice("ws", "port", "add", lab, "extra", "--container-port", "8888"))
    at = added.out.split("\t")[2]
    assert served.call(at, "/lab") == b"hello from /lab"
    socket_ = served.Socket(at)
    assert socket_.echo(b"still here") == b"still here"
    counted = {row["name"]: row for row in must(alice("ws", "ports", lab, "--json")).json()["items"]}
    assert counted["extra"]["connections"] >= 1
    twice = alice("ws", "port", "add", lab, "extra", "--container-port", "1")
    assert (twice.code, f"svc ws ports {lab}" in twice.err) == (1, True)
    must(alice("ws", "port", "remove", lab, "extra"))
    assert socket_.is_over()
    socket_.close()
    assert not served.answers(at)
    assert "extra" not in must(alice("ws", "ports", lab)).out


def test_nobody_inside_listens(alice: Call, lab: str) -> None:
    added = must(alice("ws", "port", "add", lab, "nothing", "--container-port", "9"))
    assert not served.answers(added.out.split("\t")[2])


def test_ports_outlive_the_server_and_stops(
    alice: Call, lab: str, url: Callable[..., str], service: Service
) -> None:
    at = url()
    socket_ = served.Socket(at)
    service.stop()
    assert socket_.echo(b"without svc") == b"without svc"
    assert served.call(at) == b"hello from /"
    service.start()
    assert url() == at
    assert socket_.echo(b"with another svc") == b"with another svc"
    must(alice("ws", "stop", lab))
    assert socket_.is_over()
    socket_.close()
    assert must(alice("ws", "ports", lab)).out.split("\t")[3] == "closed"
    until(lambda: not served.answers(at), 10)
    must(alice("ws", "start", lab))
    assert url() == at


def test_a_foreign_listener_on_the_stored_port(alice: Call, lab: str, url: Callable[..., str]) -> None:
    at = url()
    must(alice("ws", "stop", lab))
    port = int(at.rpartition(":")[2])
    with socket.create_server(("127.0.0.1", port)) as foreign:
        must(alice("ws", "start", lab))
        other = url()
        assert other != at
        assert served.call(other, "/lab") == b"hello from /lab"
        foreign.settimeout(0)
        with pytest.raises(BlockingIOError):
            foreign.accept()


def test_ports_of_a_create_and_those_that_cannot_be(alice: Call, app: str) -> None:
    created = must(alice("ws", "create", "--template", app, "--name", "two", "--port", "api=22", "--json"))
    try:
        rows = must(alice("ws", "ports", "two", "--json")).json()["items"]
        assert [(row["name"], row["container_port"]) for row in rows] == [("api", 22), ("http", 8888)]
        assert len({row["host_port"] for row in rows}) == 2
        assert {row["name"] for row in created.json()["ports"]} == {"api", "http"}
    finally:
        must(alice("ws", "delete", "two", "--yes"))
    refused = alice("ws", "create", "--template", app, "--name", "three", "--port", "http=22")
    assert (refused.code, "the template has a port http" in refused.err) == (1, True)


def test_anothers_ports_do_not_exist(bob: Call, alice: Call, lab: str) -> None:
    found = must(alice("api", "GET", f"/api/workspaces/{lab}")).json()["id"]
    for arguments in (("ports", found), ("port", "remove", found, "http")):
        refused = bob("ws", *arguments)
        assert (refused.code, "no workspace" in refused.err) == (1, True)
