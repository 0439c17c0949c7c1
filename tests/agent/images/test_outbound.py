"""Pulls and builds by a proxy, from a registry with a private authority: the settings of the server.

The registry's name exists only for the proxy, so that nothing else leads there.
"""

from __future__ import annotations

import json
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent.images.test_builds import archive, lines_of
from agent.priv_ns import Agent, User
from agent.registry import Registry

from svc_helper.agent import outbound

pytestmark = pytest.mark.root
HOST = "registry.test"
IMAGE = f"{HOST}/base:1"
REF = "localhost/svc/tpl-outbound:0"


class Proxy:
    """A proxy that leads every CONNECT to one port of this host, and notes where it was to lead."""

    def __init__(self, target: int) -> None:
        self.target = target
        self.asked: list[str] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._lead, args=(connection,), daemon=True).start()

    def _lead(self, connection: socket.socket) -> None:
        with connection, socket.create_connection(("127.0.0.1", self.target)) as target:
            head = b""
            while b"\r\n\r\n" not in head and (part := connection.recv(4096)):
                head += part
            self.asked.append(" ".join(head.decode().split()[:2]))
            connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=self._copy, args=(target, connection), daemon=True).start()
            self._copy(connection, target)

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while part := source.recv(65536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        """Accept nothing more."""
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


@pytest.fixture
def proxy(registry: Registry, image: str, directory: Path) -> Iterator[Proxy]:
    """In front of a second registry, with a certificate, on the same images."""
    place = directory / "outbound"
    place.mkdir(mode=0o755)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", place / "key.pem", "-out", place / "ca.pem", "-days", "2", "-subj", f"/CN={HOST}",
         "-addext", f"subjectAltName=DNS:{HOST}"],
        check=True, capture_output=True,
    )  # fmt: skip
    (place / "ca.pem").chmod(0o644)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (place / "registry.yml").write_text(
        f"version: 0.1\nstorage: {{ filesystem: {{ rootdirectory: {directory}/registry }} }}\n"
        f'http: {{ addr: "127.0.0.1:{port}", tls: '
        f"{{ certificate: {place}/ca.pem, key: {place}/key.pem }} }}\n"
    )
    served = subprocess.Popen(
        ["docker-registry", "serve", str(place / "registry.yml")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    created = Proxy(port)
    settings = {"proxy": created.url, "no_proxy": ".lan", "ca_file": f"{place}/ca.pem"}
    for name, text in (
        (outbound.FILE, json.dumps(settings)),
        ("registries.json", json.dumps({"registries": [{"host": HOST}]})),
        ("registries.conf", "unqualified-search-registries = []\n"),
    ):
        (place / name).write_text(text)
        (place / name).chmod(0o644)
    try:
        yield created
    finally:
        created.close()
        served.kill()
        served.wait()


@pytest.fixture
def agent(proxy: Proxy, user: User, directory: Path) -> Iterator[Agent]:
    place = directory / "outbound"
    started = user.start_agent(
        registries=str(place / "registries.json"), registries_conf=str(place / "registries.conf")
    )
    yield started
    started.close()
    user.podman("rmi", "-f", REF, IMAGE, check=False)


def test_a_pull_and_a_build(agent: Agent, proxy: Proxy, user: User) -> None:
    figures = agent.call("image.preflight", images=[IMAGE]).data
    assert figures["images"][0]["image"] == IMAGE, "skopeo"
    assert agent.call("image.pull", image=IMAGE).data
    assert set(proxy.asked) == {f"CONNECT {HOST}:443"}
    text = (
        f"FROM {IMAGE}\nRUN --mount=type=secret,id=ca head -n 1 /run/secrets/ca; env | grep -i proxy | sort\n"
    )
    answer = agent.call("image.build", give=archive(text), image=REF, bases=[IMAGE], triggers=True)
    assert answer.data, answer.message
    said = lines_of(answer)
    assert "-----BEGIN CERTIFICATE-----" in said
    assert {f"http_proxy={proxy.url}", f"HTTPS_PROXY={proxy.url}", "NO_PROXY=.lan"} <= set(said)
    record = user.podman("inspect", "--type=image", REF).stdout + user.podman("history", REF).stdout
    assert proxy.url not in record and "CERTIFICATE" not in record
    inside = user.run(
        "podman", "run", "--rm", "--pull=never", REF, "env",
        http_proxy=proxy.url, CONTAINERS_CONF=f"{user.runtime}/svc/containers.conf",
    )  # fmt: skip
    assert "proxy" not in inside.stdout.lower(), "a workspace's environment is its template's"
