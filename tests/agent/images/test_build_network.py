"""The network of a build: whoever wrote the Dockerfile gets no further than the network of a workspace."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.images.test_builds import archive, lines_of
from agent.priv_ns import Agent

from svc_helper.agent.calls import Failure
from svc_helper.agent.images import builder
from svc_helper.agent.images.build_cleanup import BuildPaths

pytestmark = pytest.mark.root
MARK = "greetings-from-the-loopback"
REF = "localhost/svc/tpl-network:0123456789abcdef"


@pytest.fixture
def port() -> Iterator[int]:
    """The port of a service on the host's loopback, which greets everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def greet() -> None:
            while True:
                try:
                    guest, _ = server.accept()
                except OSError:
                    return
                with guest:
                    guest.sendall(MARK.encode())

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_a_build_does_not_reach_the_hosts_loopback(agent: Agent, image: str, port: int) -> None:
    """Podman 4.3 would let it, by the address of the router that it makes up; Podman 5 has those of pasta."""
    hosts = "127.0.0.1 10.0.2.2 10.0.2.3 169.254.1.1 169.254.1.2 localhost"
    inspections = f"for host in {hosts}; do echo $host; timeout 3 nc $host {port} </dev/null; done"
    text = f"FROM {image}\nRUN ip route; {inspections}; true\n"
    answer = agent.call("image.build", give=archive(text), image=REF, bases=[image], triggers=False)
    assert answer.data
    lines = lines_of(answer)
    assert any(" dev tap0 " in line or " dev eth0 " in line for line in lines), lines  # it has a network
    assert not any(MARK in line for line in lines), lines
    assert agent.call("image.remove", image=REF).data == {"removed": True}


def test_where_no_program_may_run_nothing_is_built(tmp_path: Path) -> None:
    """Podman would pass over ours and take the host's, which lets a build reach the loopback."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", str(tmp_path)], check=True)
    try:
        place = BuildPaths(f"{tmp_path}/build-1", "/nonexistent/overlay", "/nonexistent", "token")
        with pytest.raises(Failure, match="noexec"):
            builder._write_program(place, "slirp4netns", "#!/bin/sh\n")
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
