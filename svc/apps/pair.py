"""The pair of message sockets between the process of apps and the listener: questions, and their answers.

    {"do": "open", "args": {"port", "workspace", "origin", "address", "cookie", "token"}}  [reply]
        {"ok": true, "data": {"user", "visit", "local", "scheme", "public"}}               [stream]
    {"do": "check", "args": as for open}                                                   [reply]
        {"ok": true, "data": {}}
    {"do": "describe", "args": {"port", "workspace", "origin", "address", "ticket"}}       [reply]
        {"ok": true, "data": {"user", "workspace"}}
    {"do": "enter", "args": {"port", "workspace", "origin", "address", "ticket", "poster"}} [reply]
        {"ok": true, "data": {"cookie"}}
    {"do": "leave", "args": {"port", "workspace", "origin", "address", "cookie"}}          [reply]
        {"ok": true, "data": {}}
    {"ok": false, "status", "code", "message", "hint"}                                     to any of them
    {"ended": [visit, ...]}                                       from the listener, unasked: close theirs

A question has one end of a pair of its own, the reply path. The listener takes what asks for hostile: it
parses what strangers send. A question presents a credential, and never names a user: who decides about
visitors is the listener, which alone has sessions, tickets, tokens and the helper.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from svc.apps.addresses import App, Place
from svc_helper.shim.loop import IN, Loop, Timer
from svc_helper.wire.arguments import (
    boolean,
    integer,
    listing,
    one_of,
    part_name,
    record,
    text,
    user_name,
    workspace_id,
)
from svc_helper.wire.protocol import Frame, ProtocolError, close_all, receive, send

ANSWER_S = 60.0  # what a call of the owner's agent may take, and its place among the owner's calls
CREDENTIAL_MAX = 4096  # characters
ORIGIN_MAX = 300
ENDED_MAX = 256  # visits of one message


class Asked(NamedTuple):
    """What a visitor presents for an app; one of both credentials, or none."""

    place: Place
    address: str  # the client's
    cookie: str = ""  # the value of the app's cookie
    token: str = ""  # svc_pat_...


class Checked(NamedTuple):
    """Who was let in may still be there."""


class Described(NamedTuple):
    """Whom a ticket signs in, and the workspace that the app is of."""

    user: str
    workspace: str


class Entered(NamedTuple):
    """A ticket was used up: the value of the app's cookie."""

    cookie: str


class Left(NamedTuple):
    """The cookie opens nothing any more."""


class Opened(NamedTuple):
    """A visitor who may come in, and a stream to the program."""

    user: str
    visit: str  # names what lets them in, opens nothing
    stream: socket.socket
    local: str  # "127.0.0.1:8888": where the program listens, inside
    scheme: str  # that it speaks
    is_public: bool  # it is shown the browser's address


class Refused(NamedTuple):
    """Why not: a status, and a code and words for programs, with the command that helps if there is one."""

    status: int
    code: str
    message: str
    hint: str = ""


class Ticket(NamedTuple):
    """A ticket that a page presents; `poster` is the origin of that page, empty where it only asks."""

    place: Place
    address: str
    secret: str
    poster: str = ""

    def __repr__(self) -> str:  # keeps it out of logs and tracebacks
        return "Ticket(...)"


Answer = Opened | Checked | Described | Entered | Left | Refused
Then = Callable[[Answer], None]


class Authority(Protocol):
    """Answers later, in the loop's thread; `then` is called once, with what was asked for or Refused."""

    def open(self, asked: Asked, then: Then) -> None:
        """Judge a visitor, and connect to the program: Opened."""

    def check(self, asked: Asked, then: Then) -> None:
        """Judge a visitor who is there already: Checked."""

    def describe(self, ticket: Ticket, then: Then) -> None:
        """Say whom a ticket signs in, and leave it: Described."""

    def enter(self, ticket: Ticket, then: Then) -> None:
        """Use a ticket up: Entered."""

    def leave(self, asked: Asked, then: Then) -> None:
        """End what a cookie opens: Left."""


BUSY = Refused(503, "busy", "the service does not answer")

_credential = text(CREDENTIAL_MAX)
_visit = text(64)
_APP = {"port": part_name, "workspace": workspace_id, "origin": text(ORIGIN_MAX), "address": text(64)}
_ARGUMENTS = {
    "open": record(**_APP, cookie=_credential, token=_credential),
    "check": record(**_APP, cookie=_credential, token=_credential),
    "describe": record(**_APP, ticket=_credential),
    "enter": record(**_APP, ticket=_credential, poster=text(ORIGIN_MAX)),
    "leave": record(**_APP, cookie=_credential),
}
_DO = one_of(*_ARGUMENTS)
_DATA = {
    "open": record(
        user=user_name, visit=_visit, local=text(64), scheme=one_of("http", "https"), public=boolean
    ),
    "check": record(),
    "describe": record(user=user_name, workspace=text(128)),
    "enter": record(cookie=_credential),
    "leave": record(),
}
_ENDED = record(ended=listing(_visit, 1, ENDED_MAX))
_REFUSED = record(status=integer(400, 599), code=text(64), message=text(2000), hint=text(2000))


class NotAQuestion(ProtocolError):
    """The process of apps sent something else."""


class Question:
    """What the process of apps asks: `do`, and what it presents. Answered once; its asker may have gone."""

    def __init__(self, do: str, presented: Asked | Ticket, reply: socket.socket) -> None:
        self.do, self.presented = do, presented
        self._reply = reply

    def answer(self, answer: Answer) -> None:
        """Answer it; the stream of Opened is handed over."""
        if isinstance(answer, Refused):
            self._send({"ok": False, **answer._asdict()})
        elif isinstance(answer, Opened):
            data = {
                "user": answer.user,
                "visit": answer.visit,
                "local": answer.local,
                "scheme": answer.scheme,
                "public": answer.is_public,
            }
            with answer.stream:
                self._send({"ok": True, "data": data}, [answer.stream.fileno()])
        else:
            self._send({"ok": True, "data": answer._asdict()})

    def _send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        with self._reply, suppress(OSError):
            send(self._reply, message, fds or (), wait=False)


def next_question(pair: socket.socket) -> Question:
    """Wait for a question. Raises EOFError at the end of the pair, NotAQuestion for what is none."""
    try:
        return _question(receive(pair))
    except ProtocolError as error:
        raise NotAQuestion(str(error)) from None


def _question(frame: Frame) -> Question:
    if len(frame.fds) != 1:
        close_all(frame.fds)
        raise ProtocolError("a question has one reply path")
    try:
        reply = socket.socket(fileno=frame.fds[0])
    except OSError:
        close_all(frame.fds)
        raise ProtocolError("the reply path is no socket") from None
    try:
        do, presented = _presented(frame.message)
        if reply.family != socket.AF_UNIX or reply.type != socket.SOCK_SEQPACKET:
            raise ProtocolError("the reply path is no message socket")
    except ProtocolError:
        reply.close()
        raise
    return Question(do, presented, reply)


def say_ended(pair: socket.socket, visits: Sequence[str]) -> None:
    """Tell the process of apps whose connections to close; it asks by itself now and then if this is lost."""
    for first in range(0, len(visits), ENDED_MAX):
        with suppress(OSError):
            send(pair, {"ended": list(visits[first : first + ENDED_MAX])}, wait=False)


def _presented(untrusted: dict[str, Any]) -> tuple[str, Asked | Ticket]:
    if set(untrusted) != {"do", "args"}:
        raise ProtocolError("not a question")
    do = _DO(untrusted["do"])
    args = _ARGUMENTS[do](untrusted["args"])
    place = Place(App(args["port"], args["workspace"]), args["origin"])
    if "ticket" in args:
        return do, Ticket(place, args["address"], args["ticket"], args.get("poster", ""))
    return do, Asked(place, args["address"], args["cookie"], args.get("token", ""))


class Listener:
    """The authority, as the process of apps has it: at the other end of the pair."""

    def __init__(self, loop: Loop, pair: socket.socket) -> None:
        self.loop, self.pair = loop, pair

    def on_ended(self, ended: Callable[[list[str]], None]) -> None:
        """Call `ended` with the visits that have ended, when the listener says so."""
        self.loop.watch(self.pair.fileno(), IN, lambda _: self._receive(ended))

    def _receive(self, ended: Callable[[list[str]], None]) -> None:
        try:
            frame = receive(self.pair, wait=False)
            close_all(frame.fds)
            found: list[str] = _ENDED(frame.message)["ended"]
        except BlockingIOError:
            return
        except ProtocolError:
            return  # it says it again by its answers
        except EOFError:
            raise SystemExit(1) from None  # the app parent has gone
        ended(found)

    def open(self, asked: Asked, then: Then) -> None:
        """Ask; `then` gets the answer, or `busy` when none comes."""
        self._ask("open", _as_visitor(asked), then)

    def check(self, asked: Asked, then: Then) -> None:
        """Ask, as in open()."""
        self._ask("check", _as_visitor(asked), then)

    def describe(self, ticket: Ticket, then: Then) -> None:
        """Ask, as in open()."""
        self._ask("describe", _of(ticket.place, ticket.address) | {"ticket": ticket.secret}, then)

    def enter(self, ticket: Ticket, then: Then) -> None:
        """Ask, as in open()."""
        own = {"ticket": ticket.secret, "poster": ticket.poster}
        self._ask("enter", _of(ticket.place, ticket.address) | own, then)

    def leave(self, asked: Asked, then: Then) -> None:
        """Ask, as in open()."""
        self._ask("leave", _of(asked.place, asked.address) | {"cookie": asked.cookie}, then)

    def _ask(self, do: str, args: dict[str, str], then: Then) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            try:
                send(self.pair, {"do": do, "args": args}, [theirs.fileno()], wait=False)
            except (OSError, ProtocolError):
                ours.close()
                self.loop.later(0, lambda: then(BUSY))
                return
        timer = self.loop.later(ANSWER_S, lambda: self._end(ours, timer, then, BUSY))
        self.loop.watch(ours.fileno(), IN, lambda _: self._answered(do, ours, timer, then))

    def _answered(self, do: str, ours: socket.socket, timer: Timer, then: Then) -> None:
        try:
            answer = _answer(do, receive(ours, wait=False))
        except BlockingIOError:
            return
        except (EOFError, OSError, ProtocolError):
            answer = BUSY
        self._end(ours, timer, then, answer)

    def _end(self, ours: socket.socket, timer: Timer, then: Then, answer: Answer) -> None:
        timer.drop()
        self.loop.unwatch(ours.fileno())
        ours.close()
        then(answer)


def _as_visitor(asked: Asked) -> dict[str, str]:
    return _of(asked.place, asked.address) | {"cookie": asked.cookie, "token": asked.token}


def _of(place: Place, address: str) -> dict[str, str]:
    return {
        "port": place.app.port,
        "workspace": place.app.workspace,
        "origin": place.origin,
        "address": address,
    }


def _answer(do: str, frame: Frame) -> Answer:
    """What an answer says; raises ProtocolError, after its descriptors are closed."""
    message = frame.message
    try:
        if message.get("ok") is not True:
            found = _REFUSED({key: value for key, value in message.items() if key != "ok"})
            close_all(frame.fds)
            return Refused(**found)
        data = record(ok=boolean, data=_DATA[do])(message)["data"]
        if len(frame.fds) != (do == "open"):
            raise ProtocolError("a visitor who is let in gets one stream, and nobody else any")
    except ProtocolError:
        close_all(frame.fds)
        raise
    if do == "open":
        stream = socket.socket(fileno=frame.fds[0])
        return Opened(data["user"], data["visit"], stream, data["local"], data["scheme"], data["public"])
    return _KINDS[do](**data)


_KINDS: dict[str, Callable[..., Answer]] = {
    "check": Checked,
    "describe": Described,
    "enter": Entered,
    "leave": Left,
}
