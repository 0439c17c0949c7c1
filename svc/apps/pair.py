"""The pair of message sockets between the process of apps and the listener: questions, and their answers.

    {"do": "open", "args": {"port", "workspace", "origin", "address", "cookie", "token"}}  [reply]
    {"ok": true, "data": {"user", "local", "scheme", "public"}}                            [stream]
    {"ok": false, "status", "code", "message"}

A question has one end of a pair of its own, the reply path. The listener takes what asks for hostile: it
parses what strangers send. A question presents a credential, and never names a user: who decides about
visitors is the listener, which alone has sessions, tokens and the helper.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from svc.apps.addresses import App, Place
from svc_helper.shim.loop import IN, Loop, Timer
from svc_helper.wire.arguments import (
    boolean,
    integer,
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


class Asked(NamedTuple):
    """What a visitor presents for an app; one of both credentials, or none."""

    place: Place
    address: str  # the client's
    cookie: str = ""  # the value of the app's cookie
    token: str = ""  # svc_pat_...


class Opened(NamedTuple):
    """A visitor who may come in, and a stream to the program."""

    user: str
    stream: socket.socket
    local: str  # "127.0.0.1:8888": where the program listens, inside
    scheme: str  # that it speaks
    is_public: bool  # it is shown the browser's address


class Refused(NamedTuple):
    """Why not: a status, and a code and words for programs."""

    status: int
    code: str
    message: str


class Authority(Protocol):
    """Answers later, in the loop's thread; `then` is called once."""

    def open(self, asked: Asked, then: Callable[[Opened | Refused], None]) -> None:
        """Judge a visitor, and connect to the program."""


BUSY = Refused(503, "busy", "the service does not answer")
_ASKED = record(
    port=part_name,
    workspace=workspace_id,
    origin=text(300),
    address=text(64),
    cookie=text(CREDENTIAL_MAX),
    token=text(CREDENTIAL_MAX),
)
_QUESTION = record(do=one_of("open"), args=_ASKED)
_OPENED = record(user=user_name, local=text(64), scheme=one_of("http", "https"), public=boolean)
_REFUSED = record(status=integer(400, 599), code=text(64), message=text(2000))


class Question:
    """What the process of apps asks; `opened` or `refused` answers it, once. Its asker may have gone."""

    def __init__(self, asked: Asked, reply: socket.socket) -> None:
        self.asked = asked
        self._reply = reply

    def opened(self, opened: Opened) -> None:
        """Let the visitor in; the stream is handed over."""
        data = {
            "user": opened.user,
            "local": opened.local,
            "scheme": opened.scheme,
            "public": opened.is_public,
        }
        with opened.stream:
            self._send({"ok": True, "data": data}, [opened.stream.fileno()])

    def refused(self, refused: Refused) -> None:
        """Keep the visitor out."""
        self._send({"ok": False, **refused._asdict()})

    def _send(self, message: dict[str, Any], fds: list[int] | None = None) -> None:
        with self._reply, suppress(OSError):
            send(self._reply, message, fds or (), wait=False)


def next_question(pair: socket.socket) -> Question:
    """Wait for a question. Raises EOFError at the end of the pair, ProtocolError for what is none."""
    frame = receive(pair)
    if len(frame.fds) != 1:
        close_all(frame.fds)
        raise ProtocolError("a question has one reply path")
    try:
        reply = socket.socket(fileno=frame.fds[0])
    except OSError:
        close_all(frame.fds)
        raise ProtocolError("the reply path is no socket") from None
    try:
        untrusted = _QUESTION(frame.message)["args"]
        if reply.family != socket.AF_UNIX or reply.type != socket.SOCK_SEQPACKET:
            raise ProtocolError("the reply path is no message socket")
    except ProtocolError:
        reply.close()
        raise
    place = Place(App(untrusted["port"], untrusted["workspace"]), untrusted["origin"])
    return Question(Asked(place, untrusted["address"], untrusted["cookie"], untrusted["token"]), reply)


class Listener:
    """The authority, as the process of apps has it: at the other end of the pair."""

    def __init__(self, loop: Loop, pair: socket.socket) -> None:
        self.loop, self.pair = loop, pair

    def open(self, asked: Asked, then: Callable[[Opened | Refused], None]) -> None:
        """Ask; `then` gets the answer, or `busy` when none comes."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        args = {
            "port": asked.place.app.port,
            "workspace": asked.place.app.workspace,
            "origin": asked.place.origin,
            "address": asked.address,
            "cookie": asked.cookie,
            "token": asked.token,
        }
        with theirs:
            try:
                send(self.pair, {"do": "open", "args": args}, [theirs.fileno()], wait=False)
            except (OSError, ProtocolError):
                ours.close()
                self.loop.later(0, lambda: then(BUSY))
                return
        timer = self.loop.later(ANSWER_S, lambda: self._end(ours, timer, then, BUSY))
        self.loop.watch(ours.fileno(), IN, lambda _: self._answered(ours, timer, then))

    def _answered(self, ours: socket.socket, timer: Timer, then: Callable[[Opened | Refused], None]) -> None:
        try:
            answer = _answer(receive(ours, wait=False))
        except BlockingIOError:
            return
        except (EOFError, OSError, ProtocolError):
            answer = BUSY
        self._end(ours, timer, then, answer)

    def _end(
        self,
        ours: socket.socket,
        timer: Timer,
        then: Callable[[Opened | Refused], None],
        answer: Opened | Refused,
    ) -> None:
        timer.drop()
        self.loop.unwatch(ours.fileno())
        ours.close()
        then(answer)


def _answer(frame: Frame) -> Opened | Refused:
    """What an answer says; raises ProtocolError, after its descriptors are closed."""
    message = frame.message
    try:
        if message.get("ok") is not True:
            close_all(frame.fds)
            found = _REFUSED({key: value for key, value in message.items() if key != "ok"})
            return Refused(found["status"], found["code"], found["message"])
        data = record(ok=boolean, data=_OPENED)(message)["data"]
        if len(frame.fds) != 1:
            raise ProtocolError("a visitor who is let in gets one stream")
    except ProtocolError:
        if message.get("ok") is True:
            close_all(frame.fds)
        raise
    return Opened(
        data["user"], socket.socket(fileno=frame.fds[0]), data["local"], data["scheme"], data["public"]
    )
