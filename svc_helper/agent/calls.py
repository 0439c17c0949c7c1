"""One call: its deadline, its caller, and the one place where it waits.

Every wait of a verb goes through Call.wait(), which also watches the reply
socket: the wait, and with it the call, ends at once when the caller hangs up or
sends {"cancel": true}.
"""

from __future__ import annotations

import errno
import json
import os
import select
import socket
import stat
import time
from collections.abc import Callable

from svc_helper.wire import protocol
from svc_helper.wire.quick_typing import Any

_RETRY_S = 0.02  # between attempts to send to a caller that reads slowly
_REPLY_S = 5  # for a caller whose queue is full of unread progress messages
_ENGINE_MAX = 1000  # characters of an engine's words in a reply
_CUT = " ... "


class Failure(Exception):
    """A failed call: a code, a message of our own, and the untrusted words of an engine.

    Codes are those of protocol.CODES and of podman/causes.py.
    """

    def __init__(self, code: str, message: str, engine: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.engine = engine

    @classmethod
    def of_os_error(cls, error: OSError, message: str) -> Failure:
        """`storage_full` for a full disk or quota, otherwise `failed` with this message."""
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            return cls("storage_full", "there is no space left on the disk")
        return cls("failed", message)

    @classmethod
    def of_reply(cls, reply: dict[str, Any], engine: str = "") -> Failure:
        """The failure that another process of the user reports; what its code means is the app's decision."""
        code = reply.get("code")
        known = isinstance(code, str) and code.isidentifier()
        return cls(str(code) if known else "failed", str(reply.get("message"))[:300], engine)


def shortened(untrusted_text: str) -> str:
    """The beginning and the end of long words: they begin with what was tried and end with the reason."""
    text = untrusted_text.strip()
    half = (_ENGINE_MAX - len(_CUT)) // 2
    return text if len(text) <= _ENGINE_MAX else text[:half] + _CUT + text[-half:]


class Call:
    """A running call as its verb sees it."""

    def __init__(self, rid: str, verb: str, timeout_s: float, reply: socket.socket) -> None:
        self.rid = rid
        self.verb = verb
        self.deadline = time.monotonic() + timeout_s
        self.fds: list[int] = []  # descriptors sent with the reply, closed afterwards
        self.outlives_caller = False  # a pull: only a cancel message ends it
        self.ends_idle_agent = False  # an agent that was started for this call alone ends with it
        self.afterwards: list[Callable[[], object]] = []  # made after the reply, in the same thread
        self.received: dict[str, Any] | None = None  # the caller's latest message, until receive() takes it
        self._reply: socket.socket | None = reply
        self._socket = reply

    def left(self) -> float:
        """Seconds until the deadline; raises Failure when it has passed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Failure("timeout", "the operation timed out")
        return left

    def wait(
        self, events: dict[int, int], timeout_s: float | None = None, *, message: bool = False
    ) -> set[int]:
        """Wait until one of the descriptors has an event (poll masks by descriptor); empty after timeout_s.

        With `message`, a message of the caller also ends the wait.

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
            # Rounded up, so as not to wake too early; but a look, as check() takes, never sleeps.
            ready = {fd for fd, _ in poller.poll(left * 1000 + 1 if left else 0)}
            if self._reply is not None and self._reply.fileno() in ready:
                ready.discard(self._reply.fileno())
                self._handle_caller(self._reply, poller)
            if (
                ready
                or (message and self.received is not None)
                or (until is not None and time.monotonic() >= until)
            ):
                return ready

    def check(self) -> None:
        """Raise Failure if the caller has gone or cancelled, or the deadline has passed."""
        self.wait({}, 0)

    def sleep(self, seconds: float) -> None:
        """Sleep; raises Failure as wait() does."""
        self.wait({}, seconds)

    def _handle_caller(self, reply: socket.socket, poller: select.poll) -> None:
        try:
            frame = protocol.receive(reply, wait=False)
        except (BlockingIOError, protocol.ProtocolError):
            return  # a malformed message of the caller is ignored
        except (EOFError, OSError):
            poller.unregister(reply)
            self._reply = None
            if self.outlives_caller:
                return
            raise Failure("cancelled", "the caller has gone") from None
        protocol.close_all(frame.fds)
        if frame.message.get("cancel") is True:
            raise Failure("cancelled", "cancelled")
        self.received = frame.message

    def receive(self, key: str) -> Any:
        """Wait for the caller's next message, {key: value}, and return the value.

        Raises Failure as wait() does, and for any other message.
        """
        while self.received is None:
            self.wait({}, message=True)
        message, self.received = self.received, None
        if set(message) != {key}:
            raise Failure("protocol", f"expected the message {key}")
        return message[key]

    def take_fd(self, name: str = "input") -> int:
        """The descriptor sent with the call; the verb closes it. To be taken before the first wait.

        `name` is "output" for the data stream that a verb writes into.
        """
        try:
            frame = protocol.receive(self._socket, wait=False)
        except (BlockingIOError, EOFError, OSError, protocol.ProtocolError):
            raise Failure("protocol", "no file came with the call") from None
        if frame.message != {name: True} or len(frame.fds) != 1:
            protocol.close_all(frame.fds)
            raise Failure("protocol", "no file came with the call")
        return frame.fds[0]

    def data_stream(self, name: str) -> int:
        """The socket that came with the call, which the verb closes; it blocks only in wait().

        A pipe is refused: its ends share a lock, so that the app's threads would wait
        while this process moves bytes slowly.
        """
        stream = self.take_fd(name)
        try:
            if not stat.S_ISSOCK(os.fstat(stream).st_mode):
                raise Failure("protocol", "no data stream came with the call")
            os.set_blocking(stream, False)
        except (Failure, OSError):
            os.close(stream)
            raise
        return stream

    def progress(self, facts: dict[str, Any], *, wait: bool = False) -> None:
        """Send a progress message; dropped when the caller's queue is full, unless `wait`.

        With `wait`, raises Failure when the caller has gone, and at the deadline.
        """
        while True:
            try:
                protocol.send(self._socket, {"progress": facts}, wait=False)
            except OSError as error:
                if not wait:
                    return
                if not isinstance(error, BlockingIOError):
                    raise Failure("cancelled", "the caller has gone") from None
                self.sleep(_RETRY_S)
            else:
                return

    def answer(self, data: dict[str, Any]) -> None:
        """Send the reply of a successful call, with the descriptors of `fds`."""
        self._end({"ok": True, "data": data})

    def fail(self, failure: Failure) -> None:
        """Send the reply of a failed call."""
        message = {"ok": False, "code": failure.code, "message": failure.message}
        self._end(message | ({"engine": shortened(failure.engine)} if failure.engine else {}))

    def _end(self, message: dict[str, Any]) -> None:
        fds = self.fds if message["ok"] else []
        try:
            try:
                protocol.send_reply(self._socket, message, fds, wait=False)
            except BlockingIOError:
                poller = select.poll()
                poller.register(self._socket, select.POLLOUT)
                if poller.poll(_REPLY_S * 1000):
                    protocol.send_reply(self._socket, message, fds, wait=False)
        except protocol.ProtocolError:
            too_long = {"ok": False, "code": "failed", "message": "the answer is too long"}
            protocol.send_reply(self._socket, too_long, wait=False)
        except OSError:
            pass  # the caller has gone
        finally:
            protocol.close_all(self.fds)
            self.fds = []
            self._socket.close()

    def log(self, message: str, level: str = "info", **facts: object) -> None:
        """Write one log line under the call's request id."""
        log(message, level, rid=self.rid, verb=self.verb, **facts)


def now() -> str:
    """The current time as RFC 3339, UTC, seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def log(message: str, level: str = "info", **facts: object) -> None:
    """Write one log line {at, level, process, message, ...facts}; only here do messages of engines appear."""
    line = json.dumps({"at": now(), "level": level, "process": "agent", "message": message, **facts})
    try:
        os.write(2, line.encode() + b"\n")
    except OSError:
        pass  # a log that nobody reads any more must not end a call
