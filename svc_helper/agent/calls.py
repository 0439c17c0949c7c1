"""One call: its deadline, its caller, and the one place where it waits.

Whatever a verb waits for, it waits in Call.wait(), which also watches the reply
path: a caller that hangs up or sends {"cancel": true} ends the wait, and with it
the call, at once.
"""

from __future__ import annotations

import json
import os
import select
import socket
import time
from typing import Any

from svc_helper.wire import protocol

_LISTENS_S = 0.02  # between looks whether a slow caller has read something
_LAST_WORD_S = 5  # for a caller whose queue is full of progress it has not read


class Failure(Exception):
    """An answer that is no success: a code of protocol.CODES and a text of our own."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Call:
    """What a verb knows of the call it serves."""

    def __init__(self, rid: str, verb: str, timeout_s: float, reply: socket.socket) -> None:
        self.rid = rid
        self.verb = verb
        self.deadline = time.monotonic() + timeout_s
        self.fds: list[int] = []  # descriptors that go with the answer; closed afterwards
        self.outlives_caller = False  # a pull: only a cancel message ends it
        self.heard: dict[str, Any] | None = None  # the caller's last word in a conversation
        self._reply: socket.socket | None = reply
        self._socket = reply

    def left(self) -> float:
        """Seconds until the deadline; raises Failure when it has passed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failure("timeout", "it took too long")
        return left

    def wait(self, events: dict[int, int], timeout_s: float | None = None, *, word: bool = False) -> set[int]:
        """Wait until one of the descriptors has an event (poll masks by descriptor); empty after timeout_s.

        With `word` also until the caller has said something in a conversation.

        Raises Failure when the caller hangs up or cancels, and at the deadline.
        """
        poller = select.poll()
        for fd, mask in events.items():
            poller.register(fd, mask)
        until = None if timeout_s is None else time.monotonic() + timeout_s
        if self._reply is not None:
            poller.register(self._reply, select.POLLIN)
        while True:
            left = self.left()
            if until is not None:
                left = min(left, max(0.0, until - time.monotonic()))
            ready = {fd for fd, _ in poller.poll(left * 1000 + 1)}
            if self._reply is not None and self._reply.fileno() in ready:
                ready.discard(self._reply.fileno())
                self._heed_caller(self._reply, poller)
            if (
                ready
                or (word and self.heard is not None)
                or (until is not None and time.monotonic() >= until)
            ):
                return ready

    def check(self) -> None:
        """Raise Failure if the caller has gone or cancelled, or the deadline has passed."""
        self.wait({}, 0)

    def sleep(self, seconds: float) -> None:
        """Do nothing for a while, as wait() does."""
        self.wait({}, seconds)

    def _heed_caller(self, reply: socket.socket, poller: select.poll) -> None:
        try:
            frame = protocol.receive(reply, wait=False)
        except BlockingIOError:
            return
        except protocol.ProtocolError:
            return  # nothing that a caller says but "cancel" matters
        except (EOFError, OSError):
            poller.unregister(reply)
            self._reply = None
            if self.outlives_caller:
                return
            raise Failure("cancelled", "the caller has gone") from None
        protocol.close_all(frame.fds)
        if frame.message.get("cancel") is True:
            raise Failure("cancelled", "cancelled")
        self.heard = frame.message

    def hear(self, key: str) -> Any:
        """Wait for the caller's next word in a conversation, {key: value}, and return the value.

        Raises Failure as wait() does, and for any other word.
        """
        while self.heard is None:
            self.wait({}, word=True)
        word, self.heard = self.heard, None
        if set(word) != {key}:
            raise Failure("protocol", f"not the word {key}")
        return word[key]

    def given(self, what: str = "input") -> int:
        """The file that came with the call, now the verb's to close; to be taken before the first wait.

        `what` is "output" for the pipe that a verb is to write into.
        """
        try:
            frame = protocol.receive(self._socket, wait=False)
        except (BlockingIOError, EOFError, OSError, protocol.ProtocolError):
            raise Failure("protocol", "no file came with the call") from None
        if frame.message != {what: True} or len(frame.fds) != 1:
            protocol.close_all(frame.fds)
            raise Failure("protocol", "no file came with the call")
        return frame.fds[0]

    def progress(self, facts: dict[str, Any]) -> None:
        """Tell the caller how far it is; dropped when the caller is not listening."""
        try:
            protocol.send(self._socket, {"progress": facts}, wait=False)
        except OSError:
            pass

    def tell(self, facts: dict[str, Any]) -> None:
        """As progress(), for what must not be dropped: waits until the caller listens.

        Raises Failure when the caller has gone, and at the deadline.
        """
        while True:
            try:
                protocol.send(self._socket, {"progress": facts}, wait=False)
            except BlockingIOError:
                self.sleep(_LISTENS_S)
            except OSError:
                raise Failure("cancelled", "the caller has gone") from None
            else:
                return

    def answer(self, data: dict[str, Any]) -> None:
        """Send the last message, with the descriptors of `fds`."""
        self._end({"ok": True, "data": data})

    def fail(self, failure: Failure) -> None:
        """Send the last message of a call that did not succeed."""
        self._end({"ok": False, "code": failure.code, "message": failure.message})

    def _end(self, message: dict[str, Any]) -> None:
        fds = self.fds if message["ok"] else []
        try:
            try:
                protocol.send_answer(self._socket, message, fds, wait=False)
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._socket, select.POLLOUT)
                if poller.poll(_LAST_WORD_S * 1000):
                    protocol.send_answer(self._socket, message, fds, wait=False)
        except protocol.ProtocolError:
            too_long = {"ok": False, "code": "failed", "message": "the answer is too long"}
            protocol.send_answer(self._socket, too_long, wait=False)
        except OSError:
            pass  # the caller has gone; there is nobody to tell
        finally:
            protocol.close_all(self.fds)
            self.fds = []
            self._socket.close()

    def log(self, message: str, level: str = "info", **facts: object) -> None:
        """One line to the agent's log, under the call's request id."""
        log(message, level, rid=self.rid, verb=self.verb, **facts)


def log(message: str, level: str = "info", **facts: object) -> None:
    """Write {at, level, process, message, ...facts} as one line: the one place where engines' words go."""
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    line = json.dumps({"at": at, "level": level, "process": "agent", "message": message, **facts})
    try:
        os.write(2, line.encode() + b"\n")
    except OSError:
        pass  # nobody keeps the log any more; that must not end a call
