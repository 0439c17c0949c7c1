"""The pair between apps and the listener: what is asked, what is answered, and what neither may send."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from svc.apps import pair
from svc.apps.addresses import App, Place
from svc.apps.pair import Answer, Asked, Checked, Described, Entered, Left, Opened, Refused, Ticket
from svc_helper.shim.loop import Loop
from svc_helper.wire.protocol import ProtocolError, receive, send

ASKED = Asked(Place(App("lab", "ws-f7d3k2qa"), "http://lab-f7d3k2qa.localhost:24681"), "192.0.2.7", "c00kie")
MESSAGE = {
    "do": "open",
    "args": {
        "port": "lab",
        "workspace": "ws-f7d3k2qa",
        "origin": ASKED.place.origin,
        "address": "192.0.2.7",
        "cookie": "c00kie",
        "token": "",
    },
}


class Ends:
    """Both ends of a pair; `ask` turns the asker's loop until it has an answer."""

    def __init__(self) -> None:
        self.apps, self.listener = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.loop = Loop()
        self.found: list[Answer] = []

    def ask(
        self, answer: Callable[[socket.socket], object], do: str = "open", presented: Asked | Ticket = ASKED
    ) -> Answer:
        """The answer to a question that `answer` has taken, in a thread."""
        thread = threading.Thread(target=answer, args=(self.listener,))
        thread.start()
        getattr(pair.Listener(self.loop, self.apps), do)(presented, self.found.append)
        while not self.found:
            self.loop.turn(30)
        thread.join()
        return self.found.pop()

    def close(self) -> None:
        self.loop.close()
        self.apps.close()
        self.listener.close()


@pytest.fixture
def ends() -> Iterator[Ends]:
    """A pair."""
    made = Ends()
    yield made
    made.close()


def test_a_visitor_is_let_in_with_a_stream(ends: Ends) -> None:
    ours, theirs = socket.socketpair()

    def answer(listener: socket.socket) -> None:
        question = pair.next_question(listener)
        assert (question.do, question.presented) == ("open", ASKED)
        question.answer(Opened("ada", "app-1", theirs, "127.0.0.1:8888", "http", False))

    with ours:
        opened = ends.ask(answer)
        assert isinstance(opened, Opened)
        with opened.stream as stream:
            assert opened[:2] + opened[3:] == ("ada", "app-1", "127.0.0.1:8888", "http", False)
            ours.sendall(b"through")
            assert stream.recv(7) == b"through"
        assert ours.recv(1) == b"", "the listener has kept none"


def test_a_visitor_is_refused(ends: Ends) -> None:
    refused = Refused(502, "app_not_listening", "nothing listens")
    assert ends.ask(lambda listener: pair.next_question(listener).answer(refused)) == refused


TICKET = Ticket(ASKED.place, "192.0.2.7", "svc_tkt_1", ASKED.place.origin)
LEAVING = ASKED._replace(token="")


@pytest.mark.parametrize(
    ("do", "presented", "answer"),
    [
        ("describe", TICKET._replace(poster=""), Described("ada", "notes")),
        ("enter", TICKET, Entered("c00kie")),
        ("enter", TICKET, Refused(401, "app_sign_in", "used before", "svc ws open ws-f7d3k2qa lab --link")),
        ("leave", LEAVING, Left()),
        ("check", ASKED, Checked()),
        ("check", ASKED, Refused(401, "app_sign_in", "sign in first")),
    ],
)
def test_other_questions(ends: Ends, do: str, presented: Asked | Ticket, answer: Answer) -> None:
    def take(listener: socket.socket) -> None:
        question = pair.next_question(listener)
        assert (question.do, question.presented) == (do, presented)
        question.answer(answer)

    assert ends.ask(take, do, presented) == answer


def test_the_listener_says_what_has_ended(ends: Ends) -> None:
    found: list[str] = []
    pair.Listener(ends.loop, ends.apps).on_ended(found.extend)
    pair.say_ended(ends.listener, [f"app-{number}" for number in range(2 * pair.ENDED_MAX + 1)])
    for message in ({"ended": []}, {"ended": [1]}, {"more": 1}):
        send(ends.listener, message)
    while len(found) < 2 * pair.ENDED_MAX + 1:
        ends.loop.turn(5)
    assert found[0] == "app-0"
    for _ in range(5):
        ends.loop.turn(0)
    ends.listener.close()
    with pytest.raises(SystemExit):
        ends.loop.turn(5)


def test_a_ticket_is_in_no_text() -> None:
    assert "svc_tkt" not in f"{TICKET} {TICKET!r}"


def raw(message: dict[str, Any], fds: int = 0) -> Callable[[socket.socket], None]:
    """An answer with these words, and with so many descriptors."""

    def answer(listener: socket.socket) -> None:
        frame = receive(listener)
        ours, theirs = socket.socketpair()
        with socket.socket(fileno=frame.fds[0]) as reply, ours, theirs:
            send(reply, message, [theirs.fileno()] * fds)

    return answer


OPENED = {"user": "ada", "visit": "app-1", "local": "127.0.0.1:1", "scheme": "http", "public": False}


@pytest.mark.parametrize(
    ("message", "fds"),
    [
        ({}, 0),
        ({"ok": True}, 1),
        ({"ok": True, "data": OPENED}, 0),
        ({"ok": True, "data": OPENED}, 2),
        ({"ok": True, "data": OPENED | {"scheme": "ftp"}}, 1),
        ({"ok": True, "data": OPENED | {"more": 1}}, 1),
        ({"ok": False, "status": 200, "code": "a", "message": "b", "hint": ""}, 0),
        ({"ok": False, "status": 403, "code": "a"}, 1),
    ],
)
def test_an_answer_that_is_none_lets_nobody_in(ends: Ends, message: dict[str, Any], fds: int) -> None:
    assert ends.ask(raw(message, fds)) == pair.BUSY


def test_a_listener_that_goes_answers_nothing(ends: Ends) -> None:
    def leave(listener: socket.socket) -> None:
        os.close(receive(listener).fds[0])

    assert ends.ask(leave) == pair.BUSY
    ends.listener.close()
    assert ends.ask(lambda _: None) == pair.BUSY


def test_one_that_is_silent_is_not_waited_for(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair, "ANSWER_S", 0.05)
    kept: list[int] = []
    assert ends.ask(lambda listener: kept.extend(receive(listener).fds)) == pair.BUSY
    os.close(kept[0])


@pytest.mark.parametrize(
    "message",
    [
        {},
        MESSAGE | {"do": "become"},
        MESSAGE | {"more": 1},
        MESSAGE | {"args": {}},
        MESSAGE | {"args": MESSAGE["args"] | {"user": "root"}},  # type: ignore[operator]
        MESSAGE | {"args": MESSAGE["args"] | {"workspace": "../x"}},  # type: ignore[operator]
        MESSAGE | {"args": MESSAGE["args"] | {"port": "8888"[:0]}},  # type: ignore[operator]
        MESSAGE | {"args": MESSAGE["args"] | {"cookie": "a" * 4097}},  # type: ignore[operator]
        MESSAGE | {"args": MESSAGE["args"] | {"token": None}},  # type: ignore[operator]
    ],
)
def test_what_is_no_question(ends: Ends, message: dict[str, Any]) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours:
        with theirs:
            send(ends.apps, message, [theirs.fileno()])
        with pytest.raises(ProtocolError):
            pair.next_question(ends.listener)
        assert ours.recv(1) == b"", "its reply path is closed"


def test_a_question_has_one_reply_path(ends: Ends) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, open(os.devnull) as null:
        for fds in ([], [theirs.fileno()], [null.fileno()], [theirs.fileno(), theirs.fileno()]):
            send(ends.apps, MESSAGE, fds)
            with pytest.raises(ProtocolError):
                pair.next_question(ends.listener)
    ends.apps.close()
    with pytest.raises(EOFError):
        pair.next_question(ends.listener)


def test_an_asker_that_has_gone_costs_nothing(ends: Ends) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        send(ends.apps, MESSAGE, [theirs.fileno()])
    ours.close()
    mine, other = socket.socketpair()
    with mine, contextlib.closing(other):
        pair.next_question(ends.listener).answer(Opened("ada", "app-1", other, "127.0.0.1:1", "http", False))
        assert mine.recv(1) == b""
