"""A connection of the apps' side on a loop in a thread, between a client and programs of this test."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable
from typing import Any

from svc.apps.addresses import Place, find
from svc.apps.connection import Connection
from svc.apps.ends import End
from svc.apps.pair import Answer, Asked, Checked, Described, Entered, Left, Opened, Refused, Ticket
from svc_helper.shim.loop import IN, Loop

HOST = "lab-f7d3k2qa.localhost:24681"
ORIGIN = f"http://{HOST}"
TICKET = "svc_tkt_" + "0a" * 32
USED = Refused(401, "app_sign_in", "the link was used before")
Serve = Callable[[socket.socket], None]


class Program:
    """What each stream reaches: `serve` has its other end, in a thread."""

    def __init__(self, serve: Serve) -> None:
        self.serve = serve
        self.threads: list[threading.Thread] = []

    def connect(self) -> socket.socket:
        """A stream to it."""
        ours, theirs = socket.socketpair()
        theirs.settimeout(30)

        def run() -> None:
            with theirs:
                self.serve(theirs)

        self.threads.append(threading.Thread(target=run, daemon=True))
        self.threads[-1].start()
        return ours


class Stage:
    """The loop, and an authority that lets in whoever has the cookie `ada` or a token."""

    def __init__(self, serve: Serve, *, is_public: bool = False) -> None:
        self.program = Program(serve)
        self.is_public = is_public
        self.asked: list[Asked] = []
        self.checked: list[Asked] = []
        self.tickets = {TICKET}
        self.refusal: Refused | None = None
        self.connections: list[Connection] = []
        self.gone = threading.Semaphore(0)
        self.loop = Loop()
        self.waker, self.wakes = os.pipe()
        self.todo: list[Callable[[], Any]] = []
        self.loop.watch(self.waker, IN, lambda _: (os.read(self.waker, 1), self.todo.pop(0)()))  # type: ignore[arg-type,return-value]
        self.thread = threading.Thread(target=self.loop.run, daemon=True)
        self.thread.start()

    def open(self, asked: Asked, then: Callable[[Answer], None]) -> None:
        """Judge, a moment later."""
        self.asked.append(asked)
        self.loop.later(0.001, lambda: then(self._answer(asked)))

    def _answer(self, asked: Asked) -> Opened | Refused:
        if self.refusal:
            return self.refusal
        if asked.cookie not in ("ada", "bob") and not asked.token:
            return Refused(401, "app_sign_in", "sign in first")
        user = asked.cookie or "by token"
        return Opened(user, f"app-{user}", self.program.connect(), "127.0.0.1:8888", "http", self.is_public)

    def check(self, asked: Asked, then: Callable[[Answer], None]) -> None:
        """Judge again, a moment later."""
        self.checked.append(asked)
        self.loop.later(0.001, lambda: then(self.refusal or Checked()))

    def describe(self, ticket: Ticket, then: Callable[[Answer], None]) -> None:
        """One ticket is good, and stays so until it is used."""
        self.loop.later(0.001, lambda: then(self.refusal or self._judge(ticket, Described("ada", "notes"))))

    def enter(self, ticket: Ticket, then: Callable[[Answer], None]) -> None:
        """Take the ticket from a page of the app's own."""
        is_own = ticket.poster == ticket.place.origin
        answer = self._judge(ticket, Entered("ada")) if is_own else USED
        self.tickets.discard(ticket.secret)
        self.loop.later(0.001, lambda: then(answer))

    def leave(self, asked: Asked, then: Callable[[Answer], None]) -> None:
        """Forget nothing: the test sees who asked."""
        self.asked.append(asked)
        then(Left())

    def _judge(self, ticket: Ticket, answer: Answer) -> Answer:
        return answer if ticket.secret in self.tickets else USED

    def ask(self, act: Callable[[], Any]) -> Any:
        """Have something done in the loop."""
        done = threading.Event()
        found: list[Any] = []
        self.todo.append(lambda: (found.append(act()), done.set()))
        os.write(self.wakes, b"x")
        assert done.wait(30)
        return found[0]

    def client(self) -> socket.socket:
        """A browser's end of a new connection."""
        ours, theirs = socket.socketpair()
        ours.settimeout(30)
        self.ask(lambda: self._accept(theirs))
        return ours

    def _accept(self, sock: socket.socket) -> None:
        end = End(self.loop, sock, lambda data: None)
        gone: Callable[[Connection], None] = lambda _: self.gone.release()  # noqa: E731  typed
        self.connections.append(Connection(self.loop, end, "192.0.2.7", place_of, self, gone))

    def close(self) -> None:
        """End the connections and the loop."""
        for connection in self.connections:
            self.ask(connection.close)
        self.ask(lambda: setattr(self.loop, "ending", True))
        self.thread.join()
        self.loop.close()
        for thread in self.program.threads:
            thread.join(30)
        os.close(self.waker)
        os.close(self.wakes)


def place_of(host: str) -> Place | None:
    """The app of a Host header."""
    return find(host, "localhost", "http")
