"""Ports of workspaces belong to their owners: others of this host connect, and get nothing."""

from __future__ import annotations

import pwd
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from e2e import sshd
from e2e.installation import IMAGE, PATH, Call, Service, command, run
from e2e.surroundings import must, new_template, podman
from ports import free_port
from waiting import until

SERVE = [
    "/bin/sh",
    "-c",
    "mkdir /www; echo for the owner > /www/index.html; exec httpd -f -p 127.0.0.1:80 -h /www",
]
OWNER, STRANGER, NO_ACCOUNT = "tsz-alice", "tsz-mallory", "tsz-carol"
PAGE = "for the owner\n"
Port = Callable[[str], dict[str, Any]]


@pytest.fixture(scope="module")
def web(service: Service, registry: str) -> Iterator[str]:
    """Alice's running workspace with a page behind two ports, `private` and `public`; its name."""
    source: dict[str, object] = {"type": "registry", "image_ref": f"{registry}/{IMAGE}"}
    ports = [{"name": "private", "container_port": 80}]
    new_template(OWNER, service.env, "web", source, command=SERVE, ports=ports)
    for arguments in (
        ("setup", "--template", "web", "--name", "web"),
        ("start", "web"),
        ("port", "add", "web", "public", "--container-port", "80", "--access", "host"),
    ):
        must(run(OWNER, "ws", *arguments, env=service.env))
    yield "web"
    run(OWNER, "ws", "stop", "web", env=service.env)
    must(run(OWNER, "ws", "delete", "web", "--yes", env=service.env))


@pytest.fixture
def port(alice: Call, web: str) -> Port:
    """port(name) -> what `svc ws ports` says of it."""

    def find(name: str) -> dict[str, Any]:
        rows = must(alice("ws", "ports", web, "--json")).json()["items"]
        return next(dict(row) for row in rows if row["name"] == name)

    until(lambda: curl("root", find("private")["host_port"]) == PAGE)
    return find


def curl(user: str, port: int, *options: str) -> str:
    """What curl prints when that user calls the port; nothing if it fails."""
    argv = ["curl", "--silent", "--max-time", "5", *options, f"http://127.0.0.1:{port}/"]
    done = subprocess.run(argv, capture_output=True, text=True, user=user, cwd="/", check=False)
    assert (done.returncode == 0) == bool(done.stdout)
    return done.stdout


def test_the_owner_and_root_alone_get_through(port: Port) -> None:
    private, public = port("private"), port("public")
    assert (private["access"], public["access"]) == ("owner", "host")
    for user in (OWNER, "root"):
        assert curl(user, private["host_port"]) == PAGE
        assert curl(user, private["host_port"], "--interface", "127.3.2.1") == PAGE
    for user in (STRANGER, NO_ACCOUNT, "nobody", "svc"):
        assert curl(user, private["host_port"]) == ""
        assert curl(user, private["host_port"], "--interface", "127.3.2.1") == ""
        assert curl(user, public["host_port"]) == PAGE
    assert port("private")["refused"] == private["refused"] + 8
    assert (port("public")["refused"], port("private")["connections"]) == (0, 0)


def test_containers_are_their_users(port: Port, registry: str, alices: str, mallorys: str) -> None:
    """In the host's network as several ids, and through slirp4netns from a network of their own."""
    private, public = port("private")["host_port"], port("public")["host_port"]

    def fetched(user: str, network: str, address: str, inside: str, at: int) -> str:
        argv = ("run", "--rm", "--pull=never", f"--network={network}", f"--user={inside}")
        call = f"id -u; printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 5 {address} {at}"
        done = podman(user, *argv, f"{registry}/{IMAGE}", "sh", "-c", call)
        own, _, answer = done.out.partition("\n")
        assert own == inside, done
        return answer.rpartition("\n\n")[2]

    ways = [
        ("host", "127.0.0.1", "0"),
        ("host", "127.0.0.1", "1000"),  # a subordinate id
        ("slirp4netns:allow_host_loopback=true", "10.0.2.2", "0"),
    ]
    for way in ways:
        assert fetched(OWNER, *way, private) == PAGE, way
        assert fetched(STRANGER, *way, private) == "", way
    assert fetched(STRANGER, *ways[1], public) == PAGE


def test_a_request_that_is_left_behind_does_not_arrive(port: Port, alice: Call, web: str) -> None:
    """Sent and closed at once: nobody is there to be asked whose it was, so that it is nobody's."""
    private = port("private")
    send = f"exec 3<>/dev/tcp/127.0.0.1/{private['host_port']}; printf 'GET /left HTTP/1.0\\r\\n\\r\\n' >&3"
    for _ in range(20):
        command(STRANGER, "/bin/bash", "-c", send, env={"PATH": PATH})
    assert until(lambda: port("private")["refused"] >= private["refused"] + 20)


def test_a_flood_of_strangers_leaves_the_owner_alone(port: Port) -> None:
    """More than a port may have at once, and as fast as they can; none takes a place."""
    private = port("private")["host_port"]
    script = f"""
import socket, time
until = time.monotonic() + 3
while time.monotonic() < until:
    held = []
    for _ in range(200):
        try:
            held.append(socket.create_connection(("127.0.0.1", {private}), timeout=1))
        except OSError:
            pass
"""
    account = pwd.getpwnam(STRANGER)
    flood = subprocess.Popen(["/usr/bin/python3", "-c", script], user=account.pw_uid, cwd="/")
    try:
        slowest = 0.0
        while flood.poll() is None:
            began = time.monotonic()
            assert curl(OWNER, private) == PAGE
            slowest = max(slowest, time.monotonic() - began)
        assert slowest < 2
    finally:
        flood.kill()
        flood.wait()
    assert port("private")["connections"] == 0


# --- from another computer -------------------------------------------------------------------


@pytest.fixture
def tunnel(public_tmp_path: Path) -> Iterator[Callable[[str, int], int]]:
    """tunnel(user, port) -> where `ssh -L` of that user's login leads to the port, by a real sshd."""
    begun: list[subprocess.Popen[bytes]] = []

    def forward(user: str, port: int) -> int:
        local = free_port()
        argv = ["-N", "-F", "none", "-i", server.key, "-p", server.port]
        argv += ["-L", f"127.0.0.1:{local}:127.0.0.1:{port}", "-o", f"UserKnownHostsFile={server.known}"]
        argv += ["-o", "StrictHostKeyChecking=accept-new", "-o", "ExitOnForwardFailure=yes"]
        argv += ["-o", "BatchMode=yes", f"{user}@127.0.0.1"]
        begun.append(subprocess.Popen(["ssh", *map(str, argv)], stdin=subprocess.DEVNULL))
        until(lambda: sshd.listens(local))
        return local

    with sshd.running(public_tmp_path) as server:
        yield forward
        for process in begun:
            process.terminate()
            process.wait()


def test_ssh_forwards_for_the_owner_alone(port: Port, tunnel: Callable[[str, int], int]) -> None:
    """sshd connects as the user who has logged in, whoever uses the far end."""
    private, public = port("private")["host_port"], port("public")["host_port"]
    assert curl(NO_ACCOUNT, tunnel(OWNER, private)) == PAGE
    assert curl(OWNER, tunnel(STRANGER, private)) == ""
    assert curl(OWNER, tunnel(STRANGER, public)) == PAGE
