"""The streams of a running workspace: its output, once and in order over restarts, and its use."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from depths import rounds
from e2e import files
from e2e.files import Endpoint
from e2e.installation import PASSWORD, Call, Service
from e2e.live.event_streams import Reader
from e2e.registries import REPOSITORY
from e2e.surroundings import must, new_template
from waiting import until

LINES = rounds(400, 2000, 2000)
COUNT = (
    "until test -e /go; do sleep 0.1; done; i=0; "
    f"while [ $i -lt {LINES} ]; do i=$((i+1)); echo line $i; [ $((i % 40)) != 0 ] || sleep 0.1; done; "
    "until test -e /done; do sleep 0.1; done"
)
WRITTEN = "".join(f"line {number}\n" for number in range(1, LINES + 1))
AT_ONCE = 3  # events of one connection, then the client hangs up and comes back


@pytest.fixture(scope="module")
def counting(service: Service, registry: str) -> str:
    """Alice's template of a container and a launcher that count when they are told; its name."""
    source = {"type": "registry", "image_ref": f"{registry}/{REPOSITORY}:1"}
    launcher = {"name": "counter", "command": ["sh", "-c", COUNT]}
    command = ["sh", "-c", f"{COUNT}; exec sleep infinity"]
    new_template("tse-alice", service.env, "counting", source, command=command, launchers=[launcher])
    return "counting"


@pytest.fixture
def counter(alice: Call, counting: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A running workspace of Alice's, which waits for /go; its name."""
    must(alice("ws", "setup", "--template", counting, "--name", "counter"))
    must(alice("ws", "start", "counter"))
    yield "counter"
    alice("ws", "stop", "counter")
    must(alice("ws", "delete", "counter", "--yes"))


@pytest.fixture
def listener(service: Service) -> Endpoint:
    """The host socket, as alice."""
    return files.socket_of("tse-alice", service.env)


@pytest.mark.parametrize("launcher", ["", "counter"])
def test_lines_come_once_and_in_order(
    service: Service, alice: Call, listener: Endpoint, counter: str, launcher: str
) -> None:
    query = f"?launcher={launcher}" if launcher else ""
    if launcher:
        must(alice("ws", "launcher", "start", counter, launcher))
    reader = Reader(listener, f"/api/workspaces/{counter}/logs/stream{query}")
    pieces: list[dict[str, Any]] = []
    is_over = threading.Event()

    def seen() -> int:
        return sum(piece["text"].count("\n") for piece in pieces)

    def read() -> None:
        while not is_over.is_set() and seen() < LINES:
            for record in reader.some(AT_ONCE):
                if reader.name == "log":
                    pieces.append(record)
                if seen() >= LINES:
                    return  # nothing more will come
            is_over.wait(0.05)

    reading = threading.Thread(target=read)
    reading.start()
    try:
        must(alice("ws", "exec", counter, "--", "touch", "/go"))
        for count in (LINES // 4, LINES // 2):
            until(lambda count=count: seen() >= count, 120)
            with service.stopped():
                pass
        until(lambda: seen() >= LINES, 120)
    finally:
        is_over.set()
        reading.join(60)
    assert not reading.is_alive()
    assert "".join(piece["text"] for piece in pieces) == WRITTEN
    assert {piece["stream"] for piece in pieces} == {"output" if launcher else "stdout"}
    times = [piece["time"] for piece in pieces]
    assert times == sorted(times)
    assert reader.connections > 5
    again = Reader(listener, f"/api/workspaces/{counter}/logs/stream{query}")
    with again.connected() as answer:
        found = again.events(answer)
        whole = ""
        while whole != WRITTEN:
            record = next(found)
            whole += record["text"] if again.name == "log" else ""
            assert WRITTEN.startswith(whole), "from the first byte that is kept"
        must(alice("ws", "stop", counter))
        assert list(found)[-1] == {}
    assert again.name == "end"


def test_a_monitor_follows_its_workspace(
    service: Service, alice: Call, listener: Endpoint, counter: str
) -> None:
    path = f"/api/workspaces/{counter}/monitor/stream"
    page = files.session_of("tse-alice", service.env, PASSWORD)
    shape = set(must(alice("api", "GET", f"/api/workspaces/{counter}/monitor")).json())
    readers = [Reader(listener, path), Reader(page, path)]
    for _ in range(2):
        for reader in readers:
            samples = list(reader.some(2))
            assert (len(samples), reader.name) == (2, "sample")
            assert all(set(sample) == shape for sample in samples)
        with readers[0].connected() as answer:
            next(readers[0].events(answer))
            service.stop()
            for _ in readers[0].events(answer):
                pass
        assert readers[0].name == "restarting"
        service.start()
    with readers[0].connected() as answer:
        found = readers[0].events(answer)
        next(found)
        must(alice("ws", "stop", counter))
        assert list(found)[-1] == {}
    assert readers[0].name == "end"
