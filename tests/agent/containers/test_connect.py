"""Streams to programs of real workspaces, by the workspace's name: no number of the host is between them."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.containers.test_exec import run
from agent.containers.test_launchers import start
from agent.containers.test_ports import Make, Serve, everything, rows, serving, there_and_back
from agent.containers.test_shims import only_shim, shims
from agent.priv_ns import IN_EACH_STORE, Agent, Answer, User, wait_for

pytestmark = pytest.mark.root


@pytest.fixture
def serve(agent: Agent, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on a loopback address in a workspace's network."""
    yield from serving(agent, tmp_path)


def connect(agent: Agent, ws: str, port: int) -> socket.socket:
    """A stream to the program that listens there."""
    pending = agent.begin("port.connect", id=ws, container_port=port, stream=True)
    assert pending.answer().data == {}
    stream: socket.socket = pending.stream
    stream.settimeout(60)
    return stream


def attempt(agent: Agent, ws: str, port: int) -> Answer:
    """The answer to a call that is expected to fail; its stream has ended."""
    pending = agent.begin("port.connect", id=ws, container_port=port, stream=True)
    with pending.stream as stream:
        answer = pending.answer()
        stream.settimeout(30)
        assert everything(stream) == b""
        return answer


@IN_EACH_STORE
def test_a_web_server_on_the_containers_loopback(agent: Agent, make: Make) -> None:
    ws = make()
    answer = attempt(agent, ws, 8888)
    assert (answer.code, answer.message["message"]) == (
        "not_listening",
        "no program takes connections at port 8888",
    )
    run(agent, ws, "sh", "-c", "mkdir /tmp/www; echo hello from inside > /tmp/www/index.html")
    start(agent, ws, "web", "httpd", "-f", "-p", "127.0.0.1:8888", "-h", "/tmp/www")
    wait_for(lambda: run(agent, ws, "sh", "-c", "netstat -lnt | grep -q ':8888 '")["exit_code"] == 0)
    with connect(agent, ws, 8888) as stream:
        stream.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert everything(stream).endswith(b"\r\n\r\nhello from inside\n")
    assert rows(agent, ws) == [], "it needs no port of the host"


@pytest.mark.parametrize("changes", [{}, {"run_as": {"uid": 1234, "gid": 1234}}], ids=["root", "keep-id"])
def test_a_hundred_megabytes_there_and_back(
    agent: Agent, make: Make, serve: Serve, changes: dict[str, Any]
) -> None:
    ws = make(**changes)
    serve(ws, "127.0.0.1", 7001, "echo")
    with connect(agent, ws, 7001) as stream:
        there_and_back(stream)


def test_half_closed_stays_half_closed(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7002, "count")
    got = serve(ws, "127.0.0.1", 7003, "collect")
    with connect(agent, ws, 7002) as stream:
        stream.sendall(b"x" * 12345)
        stream.shutdown(socket.SHUT_WR)
        assert everything(stream) == b"12345\n", "it answers after the caller's end"
    with connect(agent, ws, 7003) as stream:
        stream.sendall(b"before ")
        assert everything(stream) == b"first\n"
        stream.sendall(b"after")
    wait_for(lambda: got.exists() and got.read_bytes() == b"before after")


def test_it_is_this_workspaces_program(agent: Agent, make: Make, serve: Serve) -> None:
    """Of two that listen at the same number, and of the host, which listens at it too."""
    ws, other = make(), make()
    serve(ws, "127.0.0.1", 7004, "mine\n")
    serve(other, "127.0.0.1", 7004, "another's\n")
    with socket.create_server(("127.0.0.1", 0)) as of_host:
        with connect(agent, ws, 7004) as stream:
            assert everything(stream) == b"mine\n"
        assert attempt(agent, ws, of_host.getsockname()[1]).code == "not_listening"


def test_it_outlives_the_agent_and_ends_with_the_workspace(
    user: User, agent: Agent, make: Make, serve: Serve
) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7005, "echo")
    mine = user.start_agent()
    with connect(mine, ws, 7005) as stream:
        mine.kill()
        stream.sendall(b"still here")
        assert stream.recv(10) == b"still here"
        assert agent.call("ctr.stop", id=ws, grace_s=0).data
        assert everything(stream) == b""
    assert attempt(agent, ws, 7005).code == "not_running"
    assert attempt(agent, "ws-99999998", 7005).code == "not_found"


def test_a_killed_shim_ends_them_and_another_is_started(
    user: User, agent: Agent, make: Make, serve: Serve
) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7006, "echo")
    with connect(agent, ws, 7006) as stream:
        os.kill(only_shim(user, ws), signal.SIGKILL)
        assert everything(stream) == b""
    wait_for(lambda: not shims(user, ws))
    with connect(agent, ws, 7006) as stream:
        stream.sendall(b"again")
        assert stream.recv(5) == b"again"


def test_who_never_reads_holds_nobody_up(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7007, "flood")
    serve(ws, "127.0.0.1", 7008, "quick\n")
    deaf = [connect(agent, ws, 7007) for _ in range(20)]
    try:
        for _ in range(20):
            with connect(agent, ws, 7008) as stream:
                assert everything(stream) == b"quick\n"
    finally:
        for stream in deaf:
            stream.close()


def test_more_streams_than_places(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7009, "echo")
    begun = [connect(agent, ws, 7009) for _ in range(512)]
    try:
        answer = attempt(agent, ws, 7009)
        assert (answer.code, answer.message["message"]) == (
            "unavailable",
            "512 connections are open in this workspace",
        )
    finally:
        for stream in begun:
            stream.close()
    wait_for(lambda: _has_place(agent, ws, 7009))


def _has_place(agent: Agent, ws: str, port: int) -> bool:
    pending = agent.begin("port.connect", id=ws, container_port=port, stream=True)
    with pending.stream:
        return pending.answer().message["ok"] is True


def test_what_is_no_stream(agent: Agent, make: Make, serve: Serve, tmp_path: Path) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7010, "echo")
    asked = {"id": ws, "container_port": 7010}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with (tmp_path / "file").open("wb") as file, ours, theirs, socket.socket() as internet:
        for sent in (file, theirs, internet):
            call = agent.begin("port.connect", **asked, sends={"output": sent.fileno()})
            assert call.answer().code == "protocol"
    assert agent.call("port.connect", **asked).code == "protocol"


def test_a_shim_of_an_older_release_is_named(user: User, agent: Agent, make: Make) -> None:
    line = '            "port.connect": self._ports.connect,'
    old = user.start_agent(sooner=("shim.run", line, ""))
    ws = make()
    assert old.call("launcher.start", id=ws, name="web", command=["sleep", "4274"], env={}, watch_ms=0).data
    for asked in (agent, old):
        answer = attempt(asked, ws, 80)
        assert (answer.code, "older release" in answer.message["message"]) == ("outdated", True)
    old.close()
