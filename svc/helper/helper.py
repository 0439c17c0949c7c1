"""The client of the helper: each call has its own reply path and deadline.

The domain and the worker call it and get data or an error of svc.errors. The agent
that replies belongs to its user, who may trace it: every reply and every descriptor
is hostile until it is checked, here or where it is used.
"""

from __future__ import annotations

import fcntl
import os
import socket
import termios
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

from svc import errors
from svc.helper.replies import RETRY_AFTER_S, Conversation, data_of, unavailable
from svc.helper.transfers import DataStream, Transfer, drained, refuses_descriptors
from svc.limits import CALLS_OUTSTANDING_MAX, FILE_SOCKET
from svc.log import log
from svc_helper.wire.limits import CALLS_PER_USER_MAX
from svc_helper.wire.protocol import INPUT, NO_USER, VERBS, Frame, ProtocolError, close_all, send

SLOT_WAIT_S = 2.0  # for a place among the outstanding calls, before 503
PATIENCE_S = 20.0  # for a place of a call that a transition needs: refused, it would undo what was begun
GRACE_S = 2.0  # for an agent to reply that the time is over
CHECK_S = 10.0  # for the helper's account check, before the call's own time begins
CLOSING_PER_USER = 4
TRANSFERS_PER_USER = 4  # at once: data streams, and calls that return a descriptor


class Helper:
    """The client of one socket pair; all threads of its process share it."""

    def __init__(self, sock: socket.socket, pair: str) -> None:
        self.sock = sock
        sock.setsockopt(
            socket.SOL_SOCKET, socket.SO_PASSCRED, 1
        )  # messages carry their sender's uid, even before a helper runs
        self.pair = pair
        self.slots = threading.BoundedSemaphore(CALLS_OUTSTANDING_MAX)
        self.lock = threading.Lock()
        self.ended = threading.Condition(self.lock)  # notified when a place becomes free
        self.patient: Counter[str | None] = Counter()  # threads that wait for a place
        self.transfers: Counter[str] = Counter()
        self.calling: Counter[str | None] = Counter()
        self.closing: Counter[str | None] = Counter()  # threads that close descriptors of an agent
        self.unread: dict[str | None, list[socket.socket]] = {}  # reply paths, see _record_unread

    def call(self, verb: str, user: str | None, args: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Make one call as `user` and return its data; raises the classes of svc.errors.

        Options: rid (required), peer (the caller's accepted connection, passed on the unix
        pair), input_fd (a file for a verb of INPUT: the agent gets it read-only, the caller
        closes it), hangup_fd (the client's connection: the call is cancelled when it closes),
        timeout_s (default and maximum: the verb's), on_progress(dict), cancelled() (called
        every second), patient (wait for a place among the user's calls instead of being refused).
        """
        frame = self._ask(verb, user, args, **options)
        self.discard(user, frame.fds)
        return data_of(frame, verb, self.pair)

    def call_later(
        self, verb: str, user: str, args: dict[str, Any], *, rid: str, peer: socket.socket | None
    ) -> ExitStack:
        """Send one call now, while the caller's connection is open; closing the stack waits for its end.

        In any thread, and without its data: a failure raises the classes of svc.errors there.
        """
        with ExitStack() as held:
            conversation = held.enter_context(self._conversation(verb, user, args, rid, peer))

            def wait() -> None:
                frame = conversation.wait_for_reply(None, None, None)
                self.discard(user, frame.fds)
                data_of(frame, verb, self.pair)

            held.callback(wait)
            return held.pop_all()

    def call_fd(
        self, verb: str, user: str, args: dict[str, Any], **options: Any
    ) -> tuple[dict[str, Any], int]:
        """As call(), for a verb that returns a descriptor, which the caller closes."""
        with self._transfer(user):
            frame = self._ask(verb, user, args, **options)
        kind = DESCRIPTORS.get(verb)
        try:
            data = data_of(frame, verb, self.pair)
            if len(frame.fds) != 1 or (kind is not None and not kind(frame.fds[0])):
                raise errors.EngineFailed(f"{verb} did not return its descriptor")
        except errors.SvcError:
            self.discard(user, frame.fds)
            raise
        return data, frame.fds[0]

    @contextmanager
    def transfer(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None = None,
        hangup_fds: Sequence[int] = (),
        input_fd: int | None = None,
        messages: bool = False,
    ) -> Iterator[Transfer]:
        """Make a call with a data stream for the length of the block; leaving it cancels the call.

        With `messages` the stream keeps the frames apart that it is sent; input_fd as in call().
        Raises TooManyRequests, and as call() does. The agent's messages are received in the block.
        """
        kind = socket.SOCK_SEQPACKET if messages else socket.SOCK_STREAM
        ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
        drop = partial(self.discard, user)
        with drained(ours, drop), theirs:
            stream = DataStream(ours, drop)
            theirs.setblocking(False)
            for end in (ours, theirs):  # as much as the kernel grants: fewer process switches
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FILE_SOCKET)
            purpose = "input" if verb in INPUT else "output"

            def attach(reply: socket.socket) -> None:
                _attach(purpose, theirs.fileno(), reply)
                if input_fd is not None:
                    _attach_file(input_fd, reply)

            with (
                self._transfer(user),
                self._conversation(verb, user, args, rid, peer, attach) as conversation,
            ):
                theirs.close()
                yield Transfer(conversation, stream, self.pair, hangup_fds)

    @contextmanager
    def attached(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None = None,
        hangup_fd: int | None = None,
    ) -> Iterator[tuple[dict[str, Any], DataStream]]:
        """Make a call that hands one end of a pair of message sockets on; its data, and our end.

        The call ends at once, the pair with the block: what the agent makes of it lasts
        longer than the agent. Raises as call() does.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        drop = partial(self.discard, user)
        with drained(ours, drop), theirs:
            frame = self._hand_on(verb, user, args, theirs, rid=rid, peer=peer, hangup_fd=hangup_fd)
            yield data_of(frame, verb, self.pair), DataStream(ours, drop)

    def connected(self, verb: str, user: str, args: dict[str, Any], *, rid: str) -> socket.socket:
        """As attached(), with a pair of stream sockets and a patient call: our end, which the caller closes.

        What comes there is hostile, and may have descriptors with it where the kernel lets them
        through. Raises as call() does.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        refuses_descriptors(ours)
        with ExitStack() as held:
            held.callback(ours.close)
            with theirs:
                frame = self._hand_on(verb, user, args, theirs, rid=rid, patient=True)
            data_of(frame, verb, self.pair)
            held.pop_all()
        return ours

    def _hand_on(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        theirs: socket.socket,
        *,
        rid: str,
        peer: socket.socket | None = None,
        hangup_fd: int | None = None,
        patient: bool = False,
    ) -> Frame:
        """Make a call that hands this end of a pair on; its last message, without descriptors."""
        attach = partial(_attach, "output", theirs.fileno())
        with self._conversation(verb, user, args, rid, peer, attach, patient=patient) as conversation:
            theirs.close()
            frame = conversation.wait_for_reply(hangup_fd, None, None)
        self.discard(user, frame.fds)
        return frame

    def discard(self, user: str | None, untrusted_fds: Sequence[int]) -> None:
        """Close descriptors that an agent sent; in a thread where the close may block.

        Closing a file on a FUSE mount waits for the mount's server, closing a lingering connection
        for its peer: without limit, if its user so wants.
        """
        harmless = [fd for fd in untrusted_fds if closes_at_once(fd)]
        close_all(harmless)
        rest = [fd for fd in untrusted_fds if fd not in harmless]
        if not rest:
            return
        log("app", "an agent sent unexpected descriptors", "error", user=user, count=len(rest))
        with self.lock:
            self.closing[user] += 1
        threading.Thread(target=self._close, args=(user, rest), daemon=True).start()

    def _close(self, user: str | None, untrusted_fds: Sequence[int]) -> None:
        try:
            close_all(untrusted_fds)
        finally:
            with self.lock:
                self.closing[user] -= 1
                self.ended.notify_all()

    @contextmanager
    def _place(self, user: str | None, patient: bool) -> Iterator[None]:
        """Hold a place among the calls of process and user; raises TooManyRequests, EngineUnavailable.

        A patient call waits for PATIENCE_S, and goes before those that are not.
        """
        with self.lock:
            if not patient or not self._wait_for_place(user):
                self._require_place(user)
            self.calling[user] += 1
        try:
            if not self.slots.acquire(timeout=PATIENCE_S if patient else SLOT_WAIT_S):
                raise unavailable("too many calls at once")
            try:
                yield
            finally:
                self.slots.release()
        finally:
            with self.lock:
                self.calling[user] -= 1
                self.ended.notify_all()

    def _wait_for_place(self, user: str | None) -> bool:
        """Wait for a place, with the lock held; False without one after PATIENCE_S."""
        self.patient[user] += 1
        try:
            return self.ended.wait_for(lambda: self._has_place(user), PATIENCE_S)
        finally:
            self.patient[user] -= 1
            if not self.patient[user]:
                del self.patient[user]

    def _has_place(self, user: str | None) -> bool:
        self._forget_read()
        running = max(self.calling[user], len(self.unread.get(user, ())))
        return running < CALLS_PER_USER_MAX and self.closing[user] < CLOSING_PER_USER

    def _require_place(self, user: str | None) -> None:
        if self.patient[user] or not self._has_place(user):
            raise errors.TooManyRequests(
                "too many of your calls are running; wait for one to end", retry_after_s=RETRY_AFTER_S
            )

    @contextmanager
    def _transfer(self, user: str) -> Iterator[None]:
        with self.lock:
            if self.transfers[user] >= TRANSFERS_PER_USER:
                raise errors.TooManyRequests(
                    "too many transfers at once; wait for one to end", retry_after_s=RETRY_AFTER_S
                )
            self.transfers[user] += 1
        try:
            yield
        finally:
            with self.lock:
                self.transfers[user] -= 1
                if not self.transfers[user]:
                    del self.transfers[user]

    def _ask(
        self,
        verb: str,
        user: str | None,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None = None,
        input_fd: int | None = None,
        hangup_fd: int | None = None,
        timeout_s: int | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
        patient: bool = False,
    ) -> Frame:
        attach = None if input_fd is None else partial(_attach_file, input_fd)
        with self._conversation(verb, user, args, rid, peer, attach, timeout_s, patient) as conversation:
            return conversation.wait_for_reply(hangup_fd, on_progress, cancelled)

    @contextmanager
    def _conversation(
        self,
        verb: str,
        user: str | None,
        args: dict[str, Any],
        rid: str,
        peer: socket.socket | None,
        attach: Callable[[socket.socket], None] | None = None,
        timeout_s: int | None = None,
        patient: bool = False,
    ) -> Iterator[Conversation]:
        """Send a call, after the descriptor for its agent; leaving the block closes the reply path."""
        allowed_s = min(timeout_s or VERBS[verb].max_timeout_s, VERBS[verb].max_timeout_s)
        message = {
            "verb": verb,
            "user": None if verb in NO_USER else user,
            "rid": rid,
            "timeout_s": allowed_s,
            "args": args,
        }
        passes_peer = peer is not None and self.pair == "unix" and verb != "helper.ping"
        with self._place(user, patient):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            drop = partial(self.discard, user)
            with drained(ours, drop), theirs:
                if attach is not None:
                    attach(ours)
                with theirs:
                    fds = [theirs.fileno(), *([peer.fileno()] if peer is not None and passes_peer else [])]
                    self._send(message, fds)
                try:
                    yield Conversation(ours, verb, allowed_s + CHECK_S + GRACE_S, drop)
                finally:
                    if attach is not None:
                        self._record_unread(user, ours)

    def _record_unread(self, user: str | None, reply: socket.socket) -> None:
        """Record a reply path that ends with messages which its agent has not received.

        The descriptor in them is in flight, on the account of the user svc, until the agent
        receives it or exits; with RLIMIT_NOFILE of those no call could be sent.
        """
        if _has_unread(reply):
            with self.lock:
                self.unread.setdefault(user, []).append(reply.dup())

    def _forget_read(self) -> None:
        """Close the recorded paths that have been read, or whose agent has exited."""
        for user, replies in list(self.unread.items()):
            left = [reply for reply in replies if _has_unread(reply)]
            for reply in replies:
                if reply not in left:
                    reply.close()
            if left:
                self.unread[user] = left
            else:
                del self.unread[user]

    def _send(self, message: dict[str, Any], fds: list[int]) -> None:
        try:
            send(self.sock, message, fds, wait=False)
        except ProtocolError:
            raise errors.TooLarge("the request is too large for one call, or is not valid text") from None
        except BlockingIOError:
            raise unavailable("the helper has too many calls waiting") from None
        except OSError as error:
            raise unavailable(f"the helper cannot be reached: {error.strerror}") from None


def _attach_file(fd: int, reply: socket.socket) -> None:
    """Send the agent a file: opened anew, read-only and with an offset of its own."""
    try:
        copy = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unavailable(f"the file could not be passed on: {error.strerror}") from None
    try:
        _attach("input", copy, reply)
    finally:
        os.close(copy)


def _attach(purpose: str, fd: int, reply: socket.socket) -> None:
    """Send the agent a descriptor, past the root helper; `purpose` is "input" or "output"."""
    try:
        send(reply, {purpose: True}, [fd], wait=False)
    except OSError as error:
        raise unavailable(f"the file could not be passed on: {error.strerror}") from None


def _has_unread(reply: socket.socket) -> bool:
    """Whether the other end of a reply path is open with messages that it has not received."""
    return fcntl.ioctl(reply, termios.TIOCOUTQ, bytes(4)) != bytes(4)


def closes_at_once(untrusted_fd: int) -> bool:
    """Whether closing it cannot block: a memfd (only these have seals) or a pidfd."""
    try:
        fcntl.fcntl(untrusted_fd, fcntl.F_GET_SEALS)
    except OSError:
        return is_pidfd(untrusted_fd)
    return True


def is_pidfd(untrusted_fd: int) -> bool:
    """Whether the descriptor is a pidfd: polling it is safe, it only reports the end of a process."""
    try:
        with open(f"/proc/self/fdinfo/{untrusted_fd}", encoding="ascii") as file:
            return any(line.startswith("Pid:") for line in file)
    except OSError:
        return False


DESCRIPTORS: dict[str, Callable[[int], bool]] = {
    "ctr.watch": is_pidfd,
    "launcher.watch_end": is_pidfd,
}
