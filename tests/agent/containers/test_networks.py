"""Networks of workspaces, on real Podman: names, and what is not reachable."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from agent.containers.test_exec import run
from agent.containers.test_ports import Serve, open_port, serving
from agent.priv_ns import Agent, Namespace, User

from svc_helper.agent.calls import Failure
from svc_helper.agent.containers import networks
from svc_helper.wire.limits import PODMAN_PROGRAM_DIRECTORIES

pytestmark = pytest.mark.root
Make = Callable[..., str]
WITHIN_S = 30
SERVE = "while true; do printf 'HTTP/1.0 200 OK\\r\\n\\r\\nof {name}\\n' | nc -l -p 5432; done"
# From the host, whose router may well take a connection to any address.
READ = """
import socket
with socket.create_connection(('{host}', 5432), 2) as connection:
    connection.settimeout(2)
    print(connection.recv(1000))
"""
FETCH = "echo | nc -w 1 {host} 5432"


@pytest.fixture(autouse=True)
def programs() -> None:
    """Skips where Podman has no netavark."""
    if not any(os.path.exists(f"{path}/netavark") for path in PODMAN_PROGRAM_DIRECTORIES):
        pytest.skip("needs netavark and aardvark-dns")


@pytest.fixture
def serve(agent: Agent, tmp_path: Path) -> Iterator[Serve]:
    """Starts a server in a workspace's network."""
    yield from serving(agent, tmp_path)


def on(name: str, alias: str) -> dict[str, str]:
    """The argument of a network."""
    return {"name": name, "alias": alias}


def fetched(agent: Agent, ws: str, host: str, expected: str = "") -> str:
    """What the server of `host` sends to the workspace, once it is `expected`."""
    deadline = time.monotonic() + (WITHIN_S if expected else 0)
    while True:
        text = str(run(agent, ws, "sh", "-c", FETCH.format(host=host))["stdout"])
        if expected in text or time.monotonic() > deadline:
            return text
        time.sleep(0.2)


def server(make: Make, agent: Agent, network: dict[str, str], content: str) -> str:
    """A running workspace that serves its own name."""
    command = ["sh", "-c", SERVE.format(name=content)]
    ws = make(start=False, command=command, network=network, name=network["alias"])
    assert agent.call("ctr.start", id=ws, network=network).data
    return ws


def address(user: User, ws: str) -> str:
    """A workspace's address on its network."""
    form = "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}"
    return user.podman("inspect", "--format", form, f"svc-{ws}").stdout.strip()


def names_of(user: User) -> list[str]:
    """The networks of the user's Podman that are ours."""
    listed = user.podman("network", "ls", "--format", "{{.Name}}").stdout.split()
    return sorted(name for name in listed if name.startswith("svc-"))


def test_workspaces_of_a_network_reach_each_other_by_name(agent: Agent, user: User, make: Make) -> None:
    tools = server(make, agent, on("lab", "tools"), "tools")
    nb = server(make, agent, on("lab", "nb"), "nb")
    other = server(make, agent, on("apart", "other"), "other")
    alone = make()
    assert "of tools" in fetched(agent, nb, "tools", "of tools")
    assert "of nb" in fetched(agent, tools, "nb", "of nb")
    # Neither by name nor by address: another network's, and one without a network.
    for ws in (other, alone):
        assert "of tools" not in fetched(agent, ws, "tools")
        assert "of tools" not in fetched(agent, ws, address(user, tools))
    assert names_of(user) == ["svc-apart", "svc-lab"]


def test_a_rename_and_another_network_apply_at_the_next_start(agent: Agent, user: User, make: Make) -> None:
    tools = server(make, agent, on("lab", "tools"), "tools")
    nb = server(make, agent, on("lab", "nb"), "nb")
    run(agent, tools, "touch", "/installed")
    agent.call("ctr.stop", id=tools, grace_s=0)
    assert agent.call("ctr.start", id=tools, network=on("lab", "db")).data
    assert "of tools" in fetched(agent, nb, "db", "of tools")
    for ws in (tools, nb):
        agent.call("ctr.stop", id=ws, grace_s=0)
        assert agent.call("ctr.start", id=ws, network=on("second", ws)).data
    assert "of tools" in fetched(agent, nb, tools, "of tools")
    assert names_of(user) == ["svc-second"]
    assert run(agent, tools, "ls", "/installed")["exit_code"] == 0


def test_the_last_container_takes_its_network_along(agent: Agent, user: User, make: Make) -> None:
    first = make(start=False, network=on("lab", "a"))
    second = make(start=False, network=on("lab", "b"))
    agent.call("ctr.remove", id=first)
    assert names_of(user) == ["svc-lab"]
    agent.call("ctr.remove", id=second)
    assert names_of(user) == []


def test_a_container_without_a_network_gets_none(agent: Agent, make: Make) -> None:
    ws = make(start=False)
    assert agent.call("ctr.start", id=ws, network=on("lab", "a")).code == "failed"


def test_a_port_is_reached_as_without_a_network(
    agent: Agent, make: Make, serve: Serve, namespace: Namespace
) -> None:
    """Also of a program that listens on the container's loopback alone."""
    ws = server(make, agent, on("lab", "nb"), "nb")
    serve(ws, "127.0.0.1", 8000, "echo")
    port = open_port(agent, ws, 8000)
    user = namespace.users[0]
    code = (
        f"import socket; s = socket.create_connection(('127.0.0.1', {port}), 20); s.sendall(b'ping');"
        "s.shutdown(1); print(s.makefile('rb').read())"
    )
    assert "ping" in user.run("/usr/bin/python3", "-c", code).stdout


def test_the_hosts_loopback_is_as_unreachable_as_before(agent: Agent, user: User, make: Make) -> None:
    ws = server(make, agent, on("lab", "nb"), "nb")
    alone = make()
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 5432)); print('ready', flush=True)\n"
        "while True: c, _ = s.accept(); c.sendall(b'of the host\\n'); c.close()"
    )
    with subprocess.Popen(["/usr/bin/python3", "-c", code], stdout=subprocess.PIPE) as service:
        try:
            assert service.stdout is not None and service.stdout.readline() == b"ready\n"
            gateway = address(user, ws).rpartition(".")[0] + ".1"
            for host in ("10.0.2.2", "10.0.2.100", gateway):
                assert "of the host" not in fetched(agent, ws, host)
            assert "of the host" not in fetched(agent, alone, "10.0.2.2")
        finally:
            service.kill()


def test_another_user_reaches_nothing_of_it(
    agent: Agent, user: User, make: Make, namespace: Namespace, directory: Path, image: str
) -> None:
    """Neither from the host, nor from a workspace on a network of the same name: it is another one."""
    tools = server(make, agent, on("lab", "tools"), "tools")
    at = address(user, tools)
    stranger = User(namespace, "tsa-stranger", directory)
    theirs = stranger.start_agent()
    try:
        assert theirs.call("image.pull", image=image).data
        arguments: dict[str, Any] = {
            "image": image, "name": "spy", "command": None, "env": {}, "run_as": None, "mounts": [],
            "resources": {"cpu_limit": None, "memory_bytes": None, "shm_bytes": None, "pids_limit": None},
            "network": on("lab", "spy"),
        }  # fmt: skip
        assert theirs.call("ctr.create", id="ws-5b7a0001", **arguments).data
        assert theirs.call("ctr.start", id="ws-5b7a0001", network=on("lab", "spy")).data
        last = int(at.rpartition(".")[2])
        others = [at] if address(stranger, "ws-5b7a0001") != at else []
        for host in ("tools", f"svc-{tools}", *others, f"{at.rpartition('.')[0]}.{last + 1}"):
            assert "of tools" not in fetched(theirs, "ws-5b7a0001", host)
        said = stranger.run("/usr/bin/python3", "-c", READ.format(host=at), check=False)
        assert "of tools" not in said.stdout
        assert "of tools" in fetched(agent, tools, "tools", "of tools")
    finally:
        theirs.call("ctr.remove", id="ws-5b7a0001")
        theirs.close()
        stranger.delete()


def test_missing_programs_are_named(tmp_path: Path) -> None:
    (tmp_path / "netavark").touch()
    with pytest.raises(Failure) as raised:
        networks._require_programs((str(tmp_path),))
    assert raised.value.code == "network_programs_missing"
    assert "lacks aardvark-dns" in raised.value.message
