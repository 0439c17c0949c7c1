"""A workspace's port against `podman run -p`: the same image, the same server, the same file."""

from __future__ import annotations

import os
import pwd
import socket
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from bench.pairs import Row, Shell
from bench.stage import IMAGE, USER, Stage
from e2e.installation import SVC, processes_of, run
from e2e.surroundings import must, new_template
from ports import free_port
from waiting import until

NAME = "bench-web"
INSIDE = 8080
BIG = 256 << 20
THROUGHPUT_ROUNDS = 7
LATENCY_ROUNDS = 40
SERVE = ["/bin/sh", "-c", f"httpd -p {INSIDE} -h /work; exec sleep infinity"]
LAST_MESSAGE_S = 30


def rows(shell: Shell, set_up: Stage) -> Iterator[Row]:
    """Throughput of one connection, the time to a first byte, and what the shim takes."""
    work = Path(pwd.getpwnam(USER).pw_dir, "work")
    _fill(work / "big", BIG)
    _fill(work / "small", 100)
    ours, theirs = _ours(set_up), _theirs(shell, set_up)
    try:
        for port in (ours, theirs):
            until(lambda port=port: _answers(port), LAST_MESSAGE_S)  # type: ignore[misc]
        mine, other = _in_turn(THROUGHPUT_ROUNDS, lambda port: _rate(port), ours, theirs)
        yield _row("port, 256 MiB to the host | podman run -p", mine, other, "MB/s", higher=True)
        mine, other = _in_turn(LATENCY_ROUNDS, lambda port: _first_byte_ms(port), ours, theirs)
        yield _row("port, connect to first byte | podman run -p", mine, other, "ms")
        yield from _shim()
    finally:
        shell("podman", "rm", "-f", "-t", "0", NAME)
        shell(str(SVC), "ws", "stop", NAME)
        (work / "big").unlink()


def _ours(set_up: Stage) -> int:
    """Start a workspace whose template has the port; the host's port that leads to it."""
    source: dict[str, object] = {"type": "registry", "image_ref": f"{set_up.registry}/{IMAGE}"}
    ports = [{"name": "web", "container_port": INSIDE}]
    new_template(USER, set_up.env, NAME, source, command=SERVE, ports=ports)
    for arguments in (("setup", "--template", NAME, "--name", NAME), ("start", NAME)):
        must(run(USER, "ws", *arguments, env=set_up.env))
    listed = must(run(USER, "ws", "list", "--json", env=set_up.env)).json()["items"]
    record: dict[str, Any] = next(item for item in listed if item["name"] == NAME)
    return int(record["ports"][0]["host_port"])


def _theirs(shell: Shell, set_up: Stage) -> int:
    port = free_port()
    shell("podman", "run", "--detach", "--name", NAME, "--init", "--pull=never", "--publish",
          f"127.0.0.1:{port}:{INSIDE}", "--volume", f"{pwd.getpwnam(USER).pw_dir}/work:/work",
          f"{set_up.registry}/{IMAGE}", *SERVE)  # fmt: skip
    return port


def _fill(path: Path, size: int) -> None:
    path.write_bytes(os.urandom(1 << 10) * (size >> 10) if size >> 10 else os.urandom(size))
    path.chmod(0o644)


def _request(port: int, name: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"GET /{name} HTTP/1.0\r\nHost: localhost\r\n\r\n".encode())
    return connection


def _answers(port: int) -> bool:
    try:
        with _request(port, "small") as connection:
            return connection.recv(64).startswith(b"HTTP/1.")
    except OSError:
        return False


def _rate(port: int) -> float:
    """Megabytes per second of one connection that is read to its end."""
    room, got = bytearray(1 << 20), 0
    with _request(port, "big") as connection:
        began = time.perf_counter()
        while count := connection.recv_into(room):
            got += count
        took = time.perf_counter() - began
    if got < BIG:
        raise RuntimeError(f"only {got} bytes came through port {port}")
    return got / took / 1e6


def _first_byte_ms(port: int) -> float:
    began = time.perf_counter()
    with _request(port, "small") as connection:
        if not connection.recv(64):
            raise RuntimeError(f"nothing came through port {port}")
    return (time.perf_counter() - began) * 1000


def _in_turn(
    rounds: int, measure: Callable[[int], float], ours: int, theirs: int
) -> tuple[list[float], list[float]]:
    """Both sides measured in turn, after one unmeasured pair."""
    measure(ours), measure(theirs)
    pairs = [(measure(ours), measure(theirs)) for _ in range(rounds)]
    return [mine for mine, _ in pairs], [other for _, other in pairs]


def _row(name: str, mine: list[float], other: list[float], unit: str, higher: bool = False) -> Row:
    ratio = statistics.median(one / two for one, two in zip(mine, other, strict=True))
    return Row(
        name, statistics.median(mine), statistics.median(other), ratio, None, unit, higher_is_better=higher
    )


def _shim() -> Iterator[Row]:
    """PSS of the shim of that workspace, with its child, after the bytes went through it."""
    shims = [one for one in processes_of(USER) if "svc_helper.shim" in one.args]
    if shims:
        total = sum(pss_kib(one.pid) for one in shims) / 1024
        yield Row("memory of a shim | bar", total, 10, total / 10, 1.0, "MB")


def pss_kib(pid: int) -> int:
    """The process's share of memory, in KiB."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
        return sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
