"""Event streams through both real listeners: resumed, silent readers, many at once, the stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from unit.web.gunicorn_worker.test_listeners import shared_listeners, socket_folder  # noqa: F401  (fixtures)
from unit.web.transferring import UID, Way, Wire, soon

from svc import limits
from svc.db import connect
from svc.db.connect import database, write


@pytest.fixture(params=["unix", "tls"])
def way(request: Any, tmp_path: Path, socket_folder: Path) -> Iterator[Way]:  # noqa: F811  (fixture)
    waits = {"svc.web.streaming.loop.TICK_S": 0.05}
    waits["svc.web.streaming.stream.STREAM_STALL_S"] = 0.5
    with shared_listeners(tmp_path, socket_folder, waits) as shared:
        yield Way(
            shared.start, shared.start.far, shared.settings, shared.settings.db, shared.folder,
            tls=request.param == "tls",
        )  # fmt: skip


def note(way: Way, first: int, last: int, text: str = "") -> None:
    """Events with these numbers, each by a commit of its own, from outside the listener."""
    connect.open_database(way.db)
    for number in range(first, last):
        with write():
            database.execute_sql(
                "INSERT INTO events (type, owner_id, subject_type, data_json)"
                " SELECT 'workspace.updated', id, 'host', ? FROM users WHERE uid = ?",
                (json.dumps({"number": number, "text": text}), UID),
            )
    connect.close_database()


class Reader:
    """Reads the stream on a connection."""

    def __init__(self, wire: Wire, query: str = "", *headers: str) -> None:
        self.wire = wire
        wire.send("GET", f"/api/events{query}", *headers)
        self.status, self.head = wire.begun()
        self.last_id = ""

    def blocks(self) -> Iterator[dict[str, str]]:
        """The blocks up to the last chunk; each chunk has whole ones."""
        while size := int(self.wire.file.readline() or b"-1", 16):
            assert size > 0, "the stream was cut"
            chunk = self.wire.file.read(size + 2)[:-2].decode()
            assert chunk.endswith("\n\n")
            for block in chunk.split("\n\n")[:-1]:
                fields = dict(line.split(": ", 1) for line in block.split("\n") if line[0] != ":")
                self.last_id = fields.get("id", self.last_id)
                yield fields
        self.wire.file.readline()

    def numbers(self, count: int) -> list[int]:
        """Of the next events."""
        found: list[int] = []
        for block in self.blocks():
            if "event" in block:
                found.append(json.loads(block["data"])["data"]["number"])
                if len(found) == count:
                    break
        return found

    def placed(self) -> Reader:
        """Once the stream has begun."""
        next(block for block in self.blocks() if "id" in block)
        return self


def test_events_of_other_processes_come_and_are_resumed(way: Way) -> None:
    with way.connected() as wire:
        reader = Reader(wire).placed()
        assert (reader.status, reader.head["content-type"]) == (200, "text/event-stream")
        assert reader.head["x-request-id"].startswith("req-")
        note(way, 0, 20)
        assert reader.numbers(10) == list(range(10))
    with way.connected() as wire:
        again = Reader(wire, "", f"Last-Event-ID: {reader.last_id}")
        assert again.numbers(10) == list(range(10, 20))


def test_streams_use_no_thread(way: Way) -> None:
    """More than the threads of the listener, which still answers."""
    count = limits.STREAMS_PER_USER
    with ExitStack() as held:
        readers = [Reader(held.enter_context(way.connected())).placed() for _ in range(count)]
        answer = way.ask("GET", "/api/events")
        assert (answer.status, answer.code) == (429, "too_many_requests")
        assert answer.head["retry-after"]
        assert way.ask("GET", "/api/users/me").status == 200
        note(way, 0, 5)
        for reader in readers:
            assert reader.numbers(5) == list(range(5))
    assert soon(lambda: way.ask("HEAD", "/api/events").status == 200)

    def opens() -> bool:
        with way.connected() as wire:
            return Reader(wire).status == 200

    assert soon(opens)


def test_a_reader_who_reads_nothing_is_closed_and_nothing_grows(way: Way) -> None:
    before = way.open_sockets()
    with way.connected() as wire:
        wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        Reader(wire).placed()
        assert way.open_sockets() > before
        with way.connected() as other:
            reader = Reader(other).placed()
            note(way, 0, 300, "x" * 16_000)
            assert reader.numbers(300) == list(range(300))
        assert soon(lambda: way.open_sockets() <= before + 1)


def test_a_reader_without_access_is_told(way: Way) -> None:
    with way.connected() as wire:
        reader = Reader(wire).placed()
        way.sql(f"UPDATE users SET disabled = 1 WHERE uid = {UID}")
        [last] = [block for block in reader.blocks() if "event" in block]
        assert last["event"] == "error"
        assert json.loads(last["data"])["error"]["code"] == "account_disabled"


def test_a_reader_who_logs_out_is_told_within_a_second(way: Way) -> None:
    """Not only when the whole rule is applied again; somebody on the host has no session to end."""
    with way.connected() as wire:
        reader = Reader(wire).placed()
        way.sql("DELETE FROM sessions" if way.tls else f"UPDATE users SET disabled = 1 WHERE uid = {UID}")
        began = time.monotonic()
        [last] = [block for block in reader.blocks() if "event" in block]
        assert json.loads(last["data"])["error"]["code"] == (
            "unauthenticated" if way.tls else "account_disabled"
        )
        assert time.monotonic() - began < 1


def test_a_client_that_goes_leaves_nothing(way: Way) -> None:
    before = way.open_sockets()
    for _ in range(20):
        with way.connected() as wire:
            Reader(wire)
    assert soon(lambda: way.open_sockets() <= before + 8)  # the loop's own


def test_the_stop_is_said_to_all(way: Way) -> None:
    with ExitStack() as held:
        readers = [Reader(held.enter_context(way.connected())).placed() for _ in range(10)]
        os.kill(way.endpoint.pid, signal.SIGTERM)
        for reader in readers:
            [block] = list(reader.blocks())
            assert block["event"] == "restarting"
            assert int(block["retry"]) > 0
