"""Calls with a data stream: a file's bytes go beside the messages.

A data stream is a pair of connected stream sockets that the app creates; the agent gets
one end with the call. It is not a pipe: the ends of a pipe share a lock, which an agent can
hold without limit by splicing from a file system of its own, while a thread of ours that
reads, writes or closes the other end waits uninterruptibly. See docs/decisions/0024.
"""

from __future__ import annotations

import array
import contextlib
import select
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

from svc import errors
from svc.descriptors import SO_PASSRIGHTS
from svc.helper.replies import Conversation, data_of
from svc_helper.wire.protocol import RIGHTS_MAX, Frame, send

PART = 256 * 1024
LAST_MESSAGE_S = 30.0  # of an agent that has closed its data stream

Discard = Callable[[Sequence[int]], None]


class DataStream:
    """The app's end of a data stream; no operation on it waits."""

    def __init__(self, sock: socket.socket, discard: Discard) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.discard = discard  # closes unexpected descriptors
        self.may_splice = refuses_descriptors(sock)  # splice would close received descriptors here

    def fileno(self) -> int:
        """The socket's descriptor."""
        return self.sock.fileno()

    def receive(self, most: int) -> bytes | None:
        """The next bytes, at most `most`: None if there are none yet, empty at the end.

        Raises EngineFailed for a message with descriptors.
        """
        try:
            return self._receive_bytes(most)
        except BlockingIOError:
            return None
        except ConnectionResetError:  # closed by an agent that had not read everything
            return self._receive_rest(most)

    def send(self, data: memoryview) -> int:
        """Send as much as there is room for; returns the count, raises BrokenPipeError for a closed end."""
        try:
            return self.sock.send(data, socket.MSG_NOSIGNAL)
        except BlockingIOError:
            return 0

    def finish(self) -> None:
        """Shut down the write side so that the agent sees EOF."""
        with contextlib.suppress(OSError):  # it is closed; the last message, or the end, is next
            self.sock.shutdown(socket.SHUT_WR)

    def _receive_rest(self, most: int) -> bytes:
        """What was sent before the reset: of message sockets the kernel reports that first."""
        try:
            return self._receive_bytes(most)
        except (BlockingIOError, ConnectionResetError):
            return b""

    def _receive_bytes(self, most: int) -> bytes:
        if self.may_splice:
            return self.sock.recv(most)
        data, untrusted_fds = _receive_with_descriptors(self.sock, most)
        if untrusted_fds:
            self.discard(untrusted_fds)
            raise errors.EngineFailed("the agent sent descriptors on a data stream")
        return data


class Transfer:
    """A call with a data stream: the stream, and the messages beside it."""

    def __init__(
        self, conversation: Conversation, stream: DataStream, pair: str, hangup_fds: Sequence[int] = ()
    ) -> None:
        self.conversation = conversation
        self.stream = stream
        self.pair = pair
        self.hangup_fds = hangup_fds
        self._progress: dict[str, Any] | None = None
        self._data: dict[str, Any] | None = None

    def receive(self, within_s: float) -> dict[str, Any]:
        """The next progress message; raises as wait(), and EngineTimeout, EngineFailed."""
        until = time.monotonic() + within_s
        self._progress = None
        while self._progress is None:
            if self._data is not None:
                raise errors.EngineFailed(f"{self.conversation.verb} ended before the transfer began")
            self._wait_until(until)
        return self._progress

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the agent."""
        with contextlib.suppress(OSError):  # it has ended; the last message, or the end, is next
            send(self.conversation.sock, message, wait=False)

    def wait(self, events: Mapping[int, int], timeout_s: float) -> set[int]:
        """Wait until one of the descriptors has an event (poll masks by descriptor); maybe empty.

        Empty after timeout_s, or when the agent has sent a message. Raises the error of its last
        message, Conflict when the peer of one of hangup_fds closes, EngineTimeout at the call's
        deadline.
        """
        masks = dict(events)
        for fd in self.hangup_fds:
            masks[fd] = masks.get(fd, 0) | select.POLLRDHUP
        poll = select.poll()
        for fd, mask in masks.items():
            poll.register(fd, mask)
        reply = self.conversation.sock.fileno()
        if self._data is None:
            poll.register(reply, select.POLLIN)
        left = min(timeout_s, self.conversation.remaining_s())
        ready = dict(poll.poll(left * 1000 + (1 if left else 0)))
        gone = select.POLLRDHUP | select.POLLHUP | select.POLLERR
        if any(ready.get(fd, 0) & gone for fd in self.hangup_fds):
            raise errors.Conflict("the caller has gone")
        if reply in ready:
            del ready[reply]
            self._handle(self.conversation.receive())
        return {fd for fd in ready if fd in events}

    def end(self, within_s: float) -> dict[str, Any]:
        """Wait for the last message and return its data; raises as wait(), and EngineTimeout."""
        until = time.monotonic() + within_s
        while self._data is None:
            self._wait_until(until)
        return self._data

    def fail(self) -> NoReturn:
        """Raise the error of an agent that closed the data stream too early."""
        self.end(LAST_MESSAGE_S)
        raise errors.EngineFailed(f"{self.conversation.verb} ended before the transfer was complete")

    def _wait_until(self, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0:
            raise errors.EngineTimeout(f"{self.conversation.verb} took too long")
        self.wait({}, left)

    def _handle(self, frame: Frame) -> None:
        if set(frame.message) != {"progress"}:
            self.conversation.discard(frame.fds)
            self._data = data_of(frame, self.conversation.verb, self.pair)
            return
        untrusted = self.conversation.handle_progress(frame)
        if untrusted is not None:
            self._progress = untrusted


@contextmanager
def drained(sock: socket.socket, discard: Discard) -> Iterator[socket.socket]:
    """Close a socket that an agent sends to at the end of the block.

    With descriptors in its queue it goes to `discard`, since closing it closes them and may
    block. They are not received: there can be more of them than a process may have open.
    """
    try:
        yield sock
    finally:
        if _is_empty(sock):
            sock.close()
        else:
            discard([sock.detach()])


def _is_empty(sock: socket.socket) -> bool:
    """Shut the socket down and receive what is in its queue; False at the first descriptor."""
    flags = socket.MSG_DONTWAIT | socket.MSG_PEEK
    try:
        is_stream = sock.type == socket.SOCK_STREAM
        if not is_stream:
            sock.setsockopt(
                socket.SOL_SOCKET, socket.SO_PASSCRED, 1
            )  # distinguishes an empty message from none
        sock.shutdown(socket.SHUT_RDWR)  # nothing more arrives
        while True:
            # Without room for descriptors: a peeked one is only a copy, so closing it cannot block.
            data, named, got, _ = sock.recvmsg(PART, 0 if is_stream else _CREDENTIALS, flags)
            if got & socket.MSG_CTRUNC:
                return False
            if not data and not named:
                return True
            sock.recv(len(data) or 1)
    except OSError:
        return True


def refuses_descriptors(sock: socket.socket) -> bool:
    """Make the kernel refuse descriptors from the other end; False where it cannot."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_PASSRIGHTS, 0)
    except OSError:
        return False
    return True


def _receive_with_descriptors(sock: socket.socket, most: int) -> tuple[bytes, list[int]]:
    """The next bytes, and the descriptors with them, which the caller closes."""
    flags = socket.MSG_CMSG_CLOEXEC | socket.MSG_DONTWAIT
    data, ancillary, _, _ = sock.recvmsg(most, _ANCILLARY, flags)
    fds = array.array("i")
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: len(content) - len(content) % fds.itemsize])
    return data, list(fds)


_CREDENTIALS = socket.CMSG_SPACE(12)
_ANCILLARY = socket.CMSG_SPACE(RIGHTS_MAX * 4) + _CREDENTIALS
