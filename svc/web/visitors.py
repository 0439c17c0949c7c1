"""Answers the process of apps: who is this, may they come in, and a stream to the program.

The other end of svc.apps.pair, in the process of the TLS listener. Each question is judged by the credential
that it presents and by nothing else that it says. Questions of one workspace have APP_CALLS_PER_WORKSPACE
threads at once, and those of all APP_CALLS: the agent of an owner who lets its visitors wait keeps nobody
else from theirs.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import peewee

from svc.apps.pair import (
    BUSY,
    Answer,
    Asked,
    Checked,
    Described,
    Entered,
    Left,
    NotAQuestion,
    Opened,
    Question,
    Refused,
    Ticket,
    next_question,
    say_ended,
)
from svc.db.connect import close_database, database
from svc.domain.apps import admission, visits
from svc.domain.apps.admission import Admission
from svc.domain.apps.visits import Where
from svc.errors import AppNotListening, SvcError
from svc.helper.helper import Helper
from svc.host.ids import new_request_id
from svc.limits import ACCESS_ENDED_S, APP_CALLS, APP_CALLS_PER_WORKSPACE, APP_QUESTIONS_PER_WORKSPACE
from svc.log import Counted
from svc.web.callers import credentials
from svc.web.gunicorn_worker.thread_pool import ThreadPool

VISITS_WATCHED = 4096  # beyond them the process of apps asks by itself
LINES_A_SECOND = 5
_nonsense = Counted("tls", "the process of apps sent what is no question", LINES_A_SECOND)
_not_served = Counted("tls", "a visitor of an app was not served", LINES_A_SECOND)
MANY = Refused(429, "too_many_requests", "too many connections to this app begin at once; try again")


def serve(pair: socket.socket, helper: Helper) -> None:
    """Answer what comes by the pair, in threads, for as long as the process lives."""
    visitors = Visitors(helper)
    threading.Thread(target=_read, args=(pair, visitors), name="visitors", daemon=True).start()
    threading.Thread(target=_watch, args=(pair, visitors), name="visits", daemon=True).start()


def _read(pair: socket.socket, visitors: Visitors) -> None:
    while True:
        try:
            visitors.take(next_question(pair))
        except EOFError:  # the app parent has gone, and this process goes with it
            pair.close()
            return
        except NotAQuestion as error:
            _nonsense.write("critical", why=str(error))


def _watch(pair: socket.socket, visitors: Visitors) -> None:
    """Tell the process of apps whose visits have ended, within ACCESS_ENDED_S."""
    written = None
    while True:
        visitors.has_let_in.wait()
        time.sleep(ACCESS_ENDED_S)
        before, written = written, _written()
        if written != before:
            with contextlib.suppress(peewee.PeeweeException):  # a busy database has ended nothing
                say_ended(pair, visitors.take_ended())
            close_database()


def _written() -> list[int]:
    """The times of the last writes to the database and to its log."""
    found = []
    for path in (database.path, f"{database.path}-wal"):
        with contextlib.suppress(OSError):
            found.append(os.stat(path).st_mtime_ns)
    return found


class Turn(NamedTuple):
    """What runs and what waits of one workspace."""

    waiting: deque[Question]
    running: list[Question]


class Visitors:
    """Who answers questions, and in which order."""

    def __init__(self, helper: Helper) -> None:
        self.helper = helper
        self.lock = threading.Lock()
        self.threads = ThreadPool(at_end=lambda: None)
        self.turns: dict[str, Turn] = {}  # by workspace; the one that had its turn last is the last
        self.running = 0
        self.visits: dict[str, None] = {}  # who was let in, the last one last
        self.has_let_in = threading.Event()

    def let_in(self, visit: str) -> None:
        """Remember a visit, so that its end is told."""
        with self.lock:
            self.visits.pop(visit, None)
            self.visits[visit] = None
            if len(self.visits) > VISITS_WATCHED:
                del self.visits[next(iter(self.visits))]
            self.has_let_in.set()

    def take_ended(self) -> list[str]:
        """The visits that have ended, each once."""
        with self.lock:
            known = list(self.visits)
        ended = visits.ended(known)
        with self.lock:
            for visit in ended:
                self.visits.pop(visit, None)
            if not self.visits:
                self.has_let_in.clear()
        return ended

    def take(self, question: Question) -> None:
        """Answer a question, now or when it is its workspace's turn."""
        workspace = question.presented.place.app.workspace
        with self.lock:
            turn = self.turns.setdefault(workspace, Turn(deque(), []))
            is_taken = len(turn.waiting) < APP_QUESTIONS_PER_WORKSPACE
            if is_taken:
                turn.waiting.append(question)
        if not is_taken:
            question.answer(MANY)
        self._begin()

    def _begin(self) -> None:
        """Give threads to those whose turn it is."""
        with self.lock:
            while self.running < APP_CALLS and (found := self._next()):
                workspace, turn = found
                question = turn.waiting.popleft()
                turn.running.append(question)
                self.running += 1
                self.turns[workspace] = self.turns.pop(workspace)  # to the end
                try:
                    self.threads.submit(self._do, workspace, question)
                except RuntimeError:  # the host has no room for a thread
                    self._end(workspace, question)
                    question.answer(BUSY)

    def _next(self) -> tuple[str, Turn] | None:
        for workspace, turn in self.turns.items():
            if turn.waiting and len(turn.running) < APP_CALLS_PER_WORKSPACE:
                return workspace, turn
        return None

    def _do(self, workspace: str, question: Question) -> None:
        try:
            found = answer(question, self.helper)
            if isinstance(found, Opened):
                self.let_in(found.visit)
            question.answer(found)
        finally:
            close_database()  # a connection takes 1.5 MB, and questions are few: one a stream
            with self.lock:
                self._end(workspace, question)
            self._begin()

    def _end(self, workspace: str, question: Question) -> None:
        """It runs no longer; the caller has the lock."""
        self.running -= 1
        turn = self.turns[workspace]
        turn.running.remove(question)
        if not turn.running and not turn.waiting:
            del self.turns[workspace]


def answer(question: Question, helper: Helper) -> Answer:
    """The answer to a question; raises nothing that a visitor could cause."""
    rid = new_request_id()
    try:
        return ACTS[question.do](question.presented, helper, rid)
    except SvcError as error:
        if error.status >= 500 and not isinstance(
            error, AppNotListening
        ):  # a tab asks that every two seconds
            _not_served.write("warning", rid=rid, code=error.code)
        return Refused(error.status, error.code, error.message, error.hint or "")
    except peewee.PeeweeException as error:
        _not_served.write("error", rid=rid, why=str(error))
        return BUSY


def _open(asked: Asked, helper: Helper, rid: str) -> Opened:
    found = _admit(asked, helper, rid)
    place = {"id": found.workspace_id, "container_port": found.container_port}
    stream = helper.connected("port.connect", found.owner, place, rid=rid)
    return Opened(found.user, found.visit, stream, f"127.0.0.1:{found.container_port}", "http", False)


def _check(asked: Asked, helper: Helper, rid: str) -> Checked:
    _admit(asked, helper, rid, background=True)
    return Checked()


def _admit(asked: Asked, helper: Helper, rid: str, *, background: bool = False) -> Admission:
    """The admission of what was presented; wrong tokens are counted by client, as those of the API."""
    where = _where(asked)
    if not asked.token:
        return admission.by_cookie(asked.cookie, where, helper, rid, background=background)
    found = admission.by_token(asked.token, where, asked.address, helper, rid)
    if found is None:
        raise credentials.wrong_token(asked.address)
    return found


def _describe(ticket: Ticket, _helper: Helper, _rid: str) -> Described:
    return admission.describe(ticket.secret, _where(ticket))


def _enter(ticket: Ticket, helper: Helper, rid: str) -> Entered:
    where = _where(ticket)
    return Entered(admission.enter(ticket.secret, where, ticket.poster, ticket.address, helper, rid))


def _leave(asked: Asked, _helper: Helper, _rid: str) -> Left:
    visits.end(asked.cookie, _where(asked))
    return Left()


def _where(presented: Asked | Ticket) -> Where:
    place = presented.place
    return Where(place.app.workspace, place.app.port, place.origin)


ACTS: dict[str, Callable[..., Answer]] = {
    "open": _open,
    "check": _check,
    "describe": _describe,
    "enter": _enter,
    "leave": _leave,
}
