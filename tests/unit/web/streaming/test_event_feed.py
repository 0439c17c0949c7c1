"""Event streams: from where on, once and in order, behind and caught up, gaps."""

from __future__ import annotations

import json
import socket
import sqlite3
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from unit.serving import copy_of_migrated, make_user
from unit.streaming import CALLER, EventReader, until

from svc.db import connect
from svc.db.connect import database, write
from svc.domain import events
from svc.web.streaming import event_feed
from svc.web.streaming import loop as loops
from svc.web.streaming import stream as streams
from svc.web.streaming.event_feed import Events, Feed


@pytest.fixture
def feed(default_loop: loops.Loop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Feed]:
    """A feed on a database with one user, ada."""
    connect.open_database(copy_of_migrated(str(tmp_path / "svc.db")))
    make_user("ada", 2001)
    feed = Feed(default_loop)
    monkeypatch.setattr(event_feed, "feed", feed)
    yield feed
    feed.close()
    connect.close_database()


def note(number: int, owner_id: int | None = 1) -> None:
    """One event, by a commit of its own."""
    with write():
        database.execute_sql(
            "INSERT INTO events (type, owner_id, subject_type, data_json)"
            " VALUES ('workspace.updated', ?, 'host', ?)",
            (owner_id, json.dumps({"number": number})),
        )


def note_to_administrators(number: int) -> None:
    """One event for all administrators."""
    with write():
        database.execute_sql(
            "INSERT INTO events (type, audience, subject_type, data_json)"
            " VALUES ('host.updated', 'administrators', 'host', ?)",
            (json.dumps({"number": number}),),
        )


VIEW = events.View(1, False, False, frozenset())


class Client(EventReader):
    """Reads a stream of its own."""

    def __init__(
        self, after: int | None, view: events.View = VIEW, require: Callable[[], object] = lambda: None
    ) -> None:
        self.stream = Events(CALLER, require, "req-1", view, after)
        super().__init__(self.stream)

    def is_there(self) -> Client:
        """Wait until it has its place."""
        until(lambda: self.stream.position >= 0)
        return self

    def numbers(self, count: int) -> list[int]:
        return [self.next()[1]["data"]["number"] for _ in range(count)]

    def close(self) -> None:
        self.sock.close()
        assert self.over.wait(20)


def test_from_now_on(feed: Feed) -> None:
    note(1)
    client = Client(None).is_there()
    for number in (2, 3):
        note(number)
    assert client.numbers(2) == [2, 3]
    assert client.last_id == "3"
    client.close()


def test_from_an_id_on(feed: Feed) -> None:
    for number in range(1, 6):
        note(number)
    client, all_ = Client(3), Client(0)
    assert client.numbers(2) == [4, 5]
    assert all_.numbers(5) == [1, 2, 3, 4, 5]
    note(6)
    assert client.numbers(1) == all_.numbers(1) == [6]
    client.close()
    all_.close()


def test_others_events_are_skipped_and_the_place_moves_on(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "HEARTBEAT_S", 0.05)
    client = Client(None).is_there()
    other = make_user("bob", 2002)
    note(1, other.id)
    until(lambda: client.stream.position == 1)
    monkeypatch.setattr(streams, "HEARTBEAT_S", 3600.0)
    note(2)
    assert client.numbers(1) == [2]
    client.close()


def test_a_heartbeat_has_the_place(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(None).is_there()
    stream = client.stream
    stream.post(stream.heartbeat)
    received = b""
    while b": still here\nid: 0\n\n" not in received:
        received += client.sock.recv(4096)
    client.close()


def test_many_at_once_while_clients_come_and_go(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """More than memory holds, to one who stays and one who comes back again and again."""
    monkeypatch.setattr(event_feed, "RECENT_MAX", 20)
    monkeypatch.setattr(event_feed, "BATCH", 7)
    count = 300

    def write_all() -> None:
        for number in range(count):
            note(number)
        connect.close_database()

    stays = Client(0).is_there()
    writer = threading.Thread(target=write_all)
    writer.start()
    seen: list[int] = []
    place = 0
    while len(seen) < count:
        client = Client(place)
        seen += client.numbers(min(17, count - len(seen)))
        place = int(client.last_id)
        client.close()
    assert seen == stays.numbers(count) == list(range(count))
    writer.join()
    stays.close()


def test_a_reader_who_stops_is_not_queued_for(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_feed, "BATCH_BYTES", 2000)
    client = Client(None).is_there()
    client.stream.post(lambda: client.stream.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096))
    for number in range(200):
        note(number)
    until(lambda: feed.recent and feed.recent[-1].event.data_json == json.dumps({"number": 199}))
    assert len(client.stream.output) < 10_000
    assert client.numbers(200) == list(range(200))  # it reads on, and misses nothing
    client.close()


def test_a_gap_is_said(feed: Feed) -> None:
    for number in range(5):
        note(number)
    with write():
        database.execute_sql("DELETE FROM events WHERE id <= 3")
        database.execute_sql("INSERT INTO facts (name, value) VALUES (?, '3')", (events.FORGOTTEN,))
    behind, ahead = Client(1), Client(99)
    assert behind.next() == ("gap", {"after": 1, "next": 4, "reason": "forgotten"})
    assert behind.numbers(2) == [3, 4]
    assert ahead.next() == ("gap", {"after": 99, "next": 6, "reason": "unknown_id"})
    note(5)
    assert behind.numbers(1) == ahead.numbers(1) == [5]
    behind.close()
    ahead.close()


def test_an_administrator_reads_all_but_their_data(feed: Feed) -> None:
    boss = make_user("boss", 2003, superuser=True)
    client = Client(0, events.View(boss.id, True, True, frozenset()))
    note(1)
    note(2, boss.id)
    (_, first), (_, second) = client.next(), client.next()
    assert (first["owner"], first["data"]) == ("ada", None)
    assert (second["owner"], second["data"]) == ("boss", {"number": 2})
    client.close()


BOSS = replace(CALLER, superuser=True)


def test_who_is_no_administrator_any_more_does_not_read_all_events(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ACCESS_RECHECK_S", 0.01)
    now = [BOSS]
    client = Client(None, events.View(1, True, True, frozenset()), lambda: now[0]).is_there()
    bob = make_user("bob", 2002)
    note(1, bob.id)
    assert client.next()[1]["owner"] == "bob"
    now[0] = CALLER
    name, data = client.next()
    assert (name, data["error"]["code"]) == ("error", "admin_only")
    client.close()


def test_who_is_no_administrator_any_more_goes_on_with_what_is_their_own(
    feed: Feed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "ACCESS_RECHECK_S", 0.01)
    now = [BOSS]
    client = Client(None, events.View(1, True, False, frozenset()), lambda: now[0]).is_there()
    note_to_administrators(1)
    assert client.numbers(1) == [1]
    now[0] = CALLER
    until(lambda: not client.stream.view.administers)
    note_to_administrators(2)
    note(3)
    assert client.numbers(1) == [3]
    client.close()


def test_a_view_of_some_types(feed: Feed) -> None:
    client = Client(0, VIEW._replace(types=frozenset({"gpu.lost"})))
    note(1)
    with write():
        database.execute_sql("INSERT INTO events (type, owner_id, subject_type) VALUES ('gpu.lost', 1, 'w')")
    assert client.next()[0] == "gpu.lost"
    client.close()


@pytest.mark.parametrize(
    "error", [connect.peewee.OperationalError("disk I/O error"), sqlite3.OperationalError("disk I/O error"),
              RuntimeError("can't start new thread")],
)  # fmt: skip
def test_a_database_that_cannot_be_read_is_read_later(
    error: Exception, feed: Feed, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(event_feed, "AGAIN_S", 0.05)
    client = Client(None).is_there()
    following, failed = events.following, []

    def failing(*arguments: Any) -> Any:
        if not failed:
            failed.append(True)
            raise error
        return following(*arguments)

    monkeypatch.setattr(events, "following", failing)
    note(1)
    assert client.numbers(1) == [1]
    said = ""

    def is_told() -> bool:  # the client may have read its event by itself before the feed did
        nonlocal said
        said += capsys.readouterr().err
        return "cannot be read" in said

    until(is_told)
    client.close()
