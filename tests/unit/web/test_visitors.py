"""What the process of apps asks is answered, in turns; its end and its nonsense end nothing else."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator

import pytest
from unit.domain.apps.conftest import ID, LAB
from unit.domain.apps.conftest import workspace as workspace
from unit.domain.conftest import ada, bob, db, far, policy, template, wakes
from unit.serving import FarEnd
from waiting import until

from svc.apps import pair
from svc.apps.addresses import App, Place
from svc.apps.pair import Answer, Asked, Checked, Entered, Left, Opened, Refused, Ticket
from svc.db.connect import database
from svc.domain.accounts import tokens
from svc.domain.accounts.tickets import Holder
from svc.domain.apps import links, visits
from svc.domain.principal import Caller
from svc.limits import APP_CALLS_PER_WORKSPACE, APP_QUESTIONS_PER_WORKSPACE, TOKEN_FAILURES_MAX
from svc.web import visitors
from svc_helper.shim.loop import Loop
from svc_helper.wire import protocol

__all__ = ["ada", "bob", "db", "far", "policy", "template", "wakes"]
PLACE = Place(App(LAB.port, ID), LAB.origin)
Ask = Callable[..., Answer]


class Asker:
    """The other end of the pair."""

    def __init__(self, far: FarEnd) -> None:
        self.apps, answering = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.answering = answering
        self.loop = Loop()
        self.ended: list[str] = []
        self.listener = pair.Listener(self.loop, self.apps)
        self.listener.on_ended(self.ended.extend)
        visitors.serve(answering, far.helper)

    def __call__(self, do: str, presented: Asked | Ticket) -> Answer:
        """Ask, and wait for the answer."""
        found: list[Answer] = []
        getattr(self.listener, do)(presented, found.append)
        while not found:
            self.loop.turn(30)
        return found[0]

    def close(self) -> None:
        """As when the app parent ends."""
        self.apps.close()
        self.loop.close()


@pytest.fixture
def ask(far: FarEnd) -> Iterator[Asker]:
    made = Asker(far)
    yield made
    made.close()


def asked(caller: Caller) -> Asked:
    """A browser in which the caller is signed in."""
    return Asked(PLACE, "192.0.2.7", visits.begin(Holder("peer", "", caller.user_id), LAB, "192.0.2.7")[1])


def test_a_visitor_gets_a_stream_to_the_owners_program(
    ada: Caller, far: FarEnd, workspace: str, ask: Asker
) -> None:
    visitor = asked(ada)
    opened = ask("open", visitor)
    assert isinstance(opened, Opened)
    with opened.stream as stream:
        assert (opened.user, opened.local, opened.scheme, opened.is_public) == (
            "ada",
            "127.0.0.1:8888",
            "http",
            False,
        )
        (call,) = far.asked()
        assert (call.verb.name, call.args) == ("port.connect", {"id": ID, "container_port": 8888})
        far.streams[-1].sendall(b"from the program")
        assert stream.recv(100) == b"from the program"
    assert ask("check", visitor) == Checked()
    assert ask("leave", visitor) == Left()
    assert ask("check", visitor) == Refused(
        401, "app_sign_in", "sign in first", f"svc ws open {ID} lab --link"
    )


def test_a_ticket(ada: Caller, workspace: str, ask: Asker) -> None:
    secret = links.issue(ada, "notes", "lab")["link"].partition("#")[2].removesuffix("/")
    ticket = Ticket(PLACE, "192.0.2.7", secret)
    assert ask("describe", ticket) == ("ada", "notes")
    entered = ask("enter", ticket._replace(poster=LAB.origin))
    assert isinstance(entered, Entered)
    assert ask("check", Asked(PLACE, "", entered.cookie)) == Checked()


def test_what_the_agent_refuses(ada: Caller, far: FarEnd, workspace: str, ask: Asker) -> None:
    far.answers["port.connect"] = "not_listening"
    refused = ask("open", asked(ada))
    assert isinstance(refused, Refused)
    assert (refused.status, refused.code) == (502, "app_not_listening")
    far.answers["port.connect"] = None
    refused = ask("open", asked(ada))
    assert isinstance(refused, Refused)
    assert refused.status >= 500


def test_the_end_of_a_visit_is_told(ada: Caller, workspace: str, ask: Asker) -> None:
    visitor = asked(ada)
    opened = ask("open", visitor)
    assert isinstance(opened, Opened)
    opened.stream.close()
    database.execute_sql("DELETE FROM app_sessions")
    until(lambda: ask.loop.turn(0.1) or ask.ended, 10, 0.01)
    assert ask.ended == [opened.visit]


def test_nonsense_ends_nothing(ada: Caller, workspace: str, ask: Asker) -> None:
    protocol.send(ask.apps, {"do": "become", "args": {"user": "root"}})
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        protocol.send(ask.apps, {"do": "open", "args": {}}, [theirs.fileno()])
    assert ask("check", asked(ada)) == Checked()


def test_a_slow_workspace_leaves_room_for_others(
    ada: Caller, far: FarEnd, workspace: str, ask: Asker
) -> None:
    """Its owner's agent answers nothing; more than it may have wait, and more than may wait are refused."""
    gate = threading.Event()
    far.answers["port.connect"] = lambda call: gate.wait(30) and {}
    found: list[Answer] = []
    visitor = asked(ada)
    most = APP_CALLS_PER_WORKSPACE + APP_QUESTIONS_PER_WORKSPACE
    for _ in range(most + 3):
        ask.listener.open(visitor, found.append)
    elsewhere = Asked(Place(App("lab", "ws-aaaaaaaa"), LAB.origin), "", "x" * 43)
    other = ask("check", elsewhere)
    assert isinstance(other, Refused)
    assert other.code == "app_sign_in"
    until(lambda: ask.loop.turn(0.05) or len(found) == 3, 10, 0.01)
    assert found == [visitors.MANY] * 3
    assert len(far.verbs()) <= APP_CALLS_PER_WORKSPACE
    gate.set()
    until(lambda: ask.loop.turn(0.05) or len(found) == most + 3, 30, 0.01)
    for answer in found:
        if isinstance(answer, Opened):
            answer.stream.close()


def test_tokens(ada: Caller, workspace: str, ask: Asker) -> None:
    secret = tokens.create(ada, "chat", app=f"{ID}/lab")["secret"]
    visitor = Asked(PLACE, "198.51.100.9", token=secret)  # whose wrong tokens no other test counts
    opened = ask("open", visitor)
    assert isinstance(opened, Opened)
    opened.stream.close()
    tokens.revoke(ada, "chat")
    until(lambda: ask.loop.turn(0.1) or ask.ended, 10, 0.01)
    assert ask.ended == [opened.visit]
    for number in range(TOKEN_FAILURES_MAX + 1):
        refused = ask("check", visitor)
        assert isinstance(refused, Refused)
        assert refused.code == ("unauthenticated" if number < TOKEN_FAILURES_MAX else "too_many_requests")
