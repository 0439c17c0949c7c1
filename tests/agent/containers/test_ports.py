"""Ports of real workspaces: live, loopback-only programs included, every byte as it was sent."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agent.containers.test_exec import run
from agent.containers.test_launchers import start
from agent.priv_ns import IN_EACH_STORE, Agent, wait_for
from ports import free_port

pytestmark = pytest.mark.root
Make = Callable[..., str]
Serve = Callable[[str, str, int, str], Path]
SERVER = Path(__file__).parents[1] / "inside_server.py"
HUNDRED_MB = 100_000_000


def open_port(agent: Agent, ws: str, container_port: int, access: str = "owner") -> int:
    """Open a free host port to it."""
    port = free_port()
    opened = agent.call("port.open", id=ws, host_port=port, container_port=container_port, access=access)
    assert opened.data == {}
    return port


@pytest.fixture
def serve(agent: Agent, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server on a loopback address in a workspace's network."""
    yield from serving(agent, tmp_path)


def serving(agent: Agent, tmp_path: Path) -> Iterator[Serve]:
    """The fixture of that name, for other files too."""
    begun = []

    def serve_in(ws: str, address: str, port: int, way: str) -> Path:
        pid = agent.call("ctr.inspect", id=ws).data["pid"]
        got = tmp_path / f"got-{port}"
        argv = ["nsenter", f"--target={pid}", "--net", sys.executable, str(SERVER), address, str(port), way]
        process = subprocess.Popen([*argv, str(got)], stdout=subprocess.PIPE)
        begun.append(process)
        assert process.stdout is not None and process.stdout.readline() == b"listening\n"
        return got

    yield serve_in
    for process in begun:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


@contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    """A client of the host."""
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        yield sock


def everything(sock: socket.socket) -> bytes:
    """What comes until the end."""
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def rows(agent: Agent, ws: str) -> list[dict[str, Any]]:
    """The open ports."""
    return agent.call("port.list", id=ws).data["ports"]


@IN_EACH_STORE
def test_a_web_server_on_the_containers_loopback(agent: Agent, make: Make) -> None:
    ws = make()
    assert rows(agent, ws) == []
    port = open_port(agent, ws, 8888)
    with connected(port) as sock, pytest.raises(ConnectionResetError):  # nobody listens yet
        sock.recv(1)
    assert rows(agent, ws)[0]["listens"] is False
    run(agent, ws, "sh", "-c", "mkdir /tmp/www; echo hello from inside > /tmp/www/index.html")
    start(agent, ws, "web", "httpd", "-f", "-p", "127.0.0.1:8888", "-h", "/tmp/www")
    wait_for(lambda: run(agent, ws, "sh", "-c", "netstat -lnt | grep -q ':8888 '")["exit_code"] == 0)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=30) as answer:
        assert answer.read() == b"hello from inside\n"
    row = wait_for(lambda: (found := rows(agent, ws)[0])["connections"] == 0 and found)
    assert row["bytes"] > 100 and (row["host_port"], row["container_port"]) == (port, 8888)
    assert row["listens"] is True


def test_one_that_listens_only_on_ipv6(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    port = open_port(agent, ws, 7000)
    if run(agent, ws, "sh", "-c", "ip -6 addr show lo | grep -q ::1")["exit_code"]:
        pytest.skip("no IPv6 in containers here")
    serve(ws, "::1", 7000, "six\n")
    with connected(port) as sock:
        assert everything(sock) == b"six\n"


def there_and_back(sock: socket.socket) -> None:
    """Send a hundred megabytes to a program that echoes them, while they come back as they were."""
    block = os.urandom(1_000_000)
    sent, received, count = hashlib.sha256(), hashlib.sha256(), 0

    def send() -> None:
        for _ in range(HUNDRED_MB // len(block)):
            sock.sendall(block)
            sent.update(block)
        sock.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    while part := sock.recv(1 << 18):
        received.update(part)
        count += len(part)
    sender.join()
    assert (count, received.digest()) == (HUNDRED_MB, sent.digest())


@pytest.mark.parametrize("changes", [{}, {"run_as": {"uid": 1234, "gid": 1234}}], ids=["root", "keep-id"])
def test_a_hundred_megabytes_there_and_back(
    agent: Agent, make: Make, serve: Serve, changes: dict[str, Any]
) -> None:
    ws = make(**changes)
    serve(ws, "127.0.0.1", 7001, "echo")
    port = open_port(agent, ws, 7001)
    with connected(port) as sock:
        there_and_back(sock)
    assert rows(agent, ws)[0]["bytes"] == 2 * HUNDRED_MB


def test_half_closed_stays_half_closed(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7002, "count")
    got = serve(ws, "127.0.0.1", 7003, "collect")
    there, back = open_port(agent, ws, 7002), open_port(agent, ws, 7003)
    with connected(there) as sock:
        sock.sendall(b"x" * 12345)
        sock.shutdown(socket.SHUT_WR)
        assert everything(sock) == b"12345\n", "it answers after the client's end"
    with connected(back) as sock:
        sock.sendall(b"before ")
        assert everything(sock) == b"first\n"
        sock.sendall(b"after")
    wait_for(lambda: got.exists() and got.read_bytes() == b"before after")


def test_who_never_reads_holds_nobody_up(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7004, "flood")
    serve(ws, "127.0.0.1", 7005, "quick\n")
    loud, quick = open_port(agent, ws, 7004), open_port(agent, ws, 7005)
    deaf = [socket.create_connection(("127.0.0.1", loud), timeout=30) for _ in range(20)]
    for _ in range(20):
        with connected(quick) as sock:
            assert everything(sock) == b"quick\n"

    def moved() -> int:
        return int(next(row["bytes"] for row in rows(agent, ws) if row["host_port"] == loud))

    def stands_still() -> bool:
        before = moved()
        time.sleep(0.5)
        return moved() == before

    wait_for(stands_still)
    assert moved() < 20 * 16 * 1024 * 1024, "each is stopped after what fits the buffers"
    for sock in deaf:
        sock.close()
    wait_for(lambda: sum(row["connections"] for row in rows(agent, ws)) == 0)


def test_more_connections_than_places(agent: Agent, make: Make, serve: Serve) -> None:
    ws = make()
    serve(ws, "127.0.0.1", 7006, "echo")
    port = open_port(agent, ws, 7006)
    begun = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(600)]
    try:
        wait_for(lambda: rows(agent, ws)[0]["connections"] == 512)
        for sock in begun[:512]:
            sock.close()
        begun[-1].sendall(b"me too")
        assert begun[-1].recv(6) == b"me too", "the others had to wait"
    finally:
        for sock in begun:
            sock.close()
    wait_for(lambda: rows(agent, ws)[0]["connections"] == 0)


@IN_EACH_STORE
def test_opened_twice_taken_and_closed(agent: Agent, make: Make, serve: Serve) -> None:
    ws, other = make(), make()
    serve(ws, "127.0.0.1", 7007, "echo")
    port = open_port(agent, ws, 7007)
    pair = {"host_port": port, "container_port": 7007, "access": "owner"}
    with connected(port) as sock:
        sock.sendall(b"here")
        assert sock.recv(4) == b"here"
        assert agent.call("port.open", id=ws, **pair).data == {}
        sock.sendall(b"still")
        assert sock.recv(5) == b"still", "it was left as it is"
        for change in ({"container_port": 1}, {"access": "host"}):
            assert agent.call("port.open", id=ws, **pair | change).code == "conflict"
        assert agent.call("port.open", id=other, **pair).code == "conflict"
        assert agent.call("port.close", id=ws, host_port=port).data == {}
        with pytest.raises(ConnectionError):
            everything(sock)
            sock.sendall(b"gone")
            everything(sock)
    with pytest.raises(ConnectionRefusedError), connected(port):
        pass
    assert agent.call("port.close", id=ws, host_port=port).data == {}
    assert rows(agent, ws) == []
    with socket.create_server(("127.0.0.1", port)):
        assert agent.call("port.open", id=ws, **pair).code == "conflict", "a stranger's"
    assert agent.call("port.open", id=ws, **pair).data == {}


@IN_EACH_STORE
def test_without_a_running_workspace_there_is_no_port(agent: Agent, make: Make) -> None:
    ws = make(start=False)
    port = free_port()
    asked = {"host_port": port, "container_port": 80, "access": "owner"}
    assert agent.call("port.open", id=ws, **asked).code == "not_running"
    assert agent.call("port.open", id="ws-99999998", **asked).code == "not_found"
    assert agent.call("port.list", id=ws).data == {"ports": []}
    assert agent.call("port.close", id=ws, host_port=port).data == {}
    with socket.create_server(("127.0.0.1", port)):
        pass
