"""The app's end of the helper's wire: one call, one fresh reply path, one deadline.

For the domain and the worker, which call `Helper.call` and get data or one of
svc.errors. The agent at the far end belongs to its user, who may trace it: every
answer and every descriptor is hostile until checked here or where it is used.
"""

from __future__ import annotations

import fcntl
import os
import socket
import termios
import threading
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from svc import errors
from svc.helper.replies import RETRY_AFTER_S, Conversation, data_of, unavailable
from svc.helper.transfers import DataStream, Transfer, drained
from svc.limits import CALLS_OUTSTANDING_MAX, CALLS_PER_USER_MAX, FILE_PIPE
from svc.log import log
from svc_helper.wire.protocol import INPUT, NO_USER, VERBS, Frame, ProtocolError, close_all, send

SLOT_WAIT_S = 2.0  # for one of the outstanding calls to end, before 503
LAST_WORD_S = 2.0  # for an agent that says itself that the time is over
CHECK_S = 10.0  # what the helper's account check may take before the call's own time runs
CLOSING_PER_USER = 4
TRANSFERS_PER_USER = 4  # calls that hand back a descriptor, at once


class Helper:
    """The client of one pair; shared by all threads of its process."""

    def __init__(self, sock: socket.socket, pair: str) -> None:
        self.sock = sock
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # says who sends, even before a helper runs
        self.pair = pair
        self.slots = threading.BoundedSemaphore(CALLS_OUTSTANDING_MAX)
        self.lock = threading.Lock()
        self.transfers: Counter[str] = Counter()
        self.calling: Counter[str | None] = Counter()
        self.closing: Counter[str | None] = Counter()  # threads that wait for the close of what an agent sent
        self.untaken: dict[str | None, list[socket.socket]] = {}  # reply paths, see _note_untaken

    def call(self, verb: str, user: str | None, args: dict[str, Any], **options: Any) -> dict[str, Any]:
        """Make one call as `user` and return its data; raises the classes of svc.errors.

        Options: rid (required), peer (the caller's accepted connection; sent on
        the unix pair), give_fd (a file for a verb of INPUT, which the agent can
        only read; stays the caller's to close), hangup_fd (the client's connection: when it goes, so does
        the call), timeout_s (default and most: the verb's own), on_progress(dict),
        cancelled() (asked each second).
        """
        frame = self._ask(verb, user, args, **options)
        self.discard(user, frame.fds)
        return data_of(frame, verb, self.pair)

    def call_fd(
        self, verb: str, user: str, args: dict[str, Any], **options: Any
    ) -> tuple[dict[str, Any], int]:
        """As call(), for a verb that hands back a descriptor, now the caller's to close."""
        with self._transfer(user):
            frame = self._ask(verb, user, args, **options)
        kind = DESCRIPTORS.get(verb)
        try:
            data = data_of(frame, verb, self.pair)
            if len(frame.fds) != 1 or (kind is not None and not kind(frame.fds[0])):
                raise errors.EngineFailed(f"{verb} came back without its descriptor")
        except errors.SvcError:
            self.discard(user, frame.fds)
            raise
        return data, frame.fds[0]

    def follow(
        self,
        verb: str,
        user: str,
        args: dict[str, Any],
        *,
        rid: str,
        peer: socket.socket | None = None,
        hangup_fds: Sequence[int] = (),
        tick_s: float,
    ) -> Generator[dict[str, Any] | None, None, None]:
        """Make one call that goes on; yields each of its messages as it comes, None after tick_s without one.

        Ends with the call, and raises as call() does, Conflict when one of
        hangup_fds hangs up. Closing the iterator cancels the call. A message is
        read only when it is asked for, so a slow reader slows its agent alone.
        """
        with self._conversation(verb, user, args, rid, peer) as conversation:
            frame = yield from conversation.follow(hangup_fds, tick_s)
        self.discard(user, frame.fds)
        data_of(frame, verb, self.pair)

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
    ) -> Iterator[Transfer]:
        """Make one call whose bytes go over a line, for the length of the block; leaving it cancels the call.

        Raises TooManyRequests, and as call() does. What the agent answers is met in the block.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        drop = partial(self.discard, user)
        with drained(ours, drop), theirs:
            stream = DataStream(ours, drop)
            theirs.setblocking(False)
            for end in (ours, theirs):  # as much as the kernel grants: fewer turns between three processes
                end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, FILE_PIPE)
            word = "input" if verb in INPUT else "output"
            give = partial(_hand_over, word, theirs.fileno())
            with self._transfer(user), self._conversation(verb, user, args, rid, peer, give) as conversation:
                theirs.close()
                yield Transfer(conversation, stream, self.pair, hangup_fds)

    def discard(self, user: str | None, untrusted_fds: Sequence[int]) -> None:
        """Close what a user's agent sent, in a thread of its own where the close may wait for that user.

        The close of a file on somebody's FUSE mount waits for the mount's server,
        that of a lingering connection for its far end: for ever, if they like.
        """
        at_once = [fd for fd in untrusted_fds if closes_at_once(fd)]
        close_all(at_once)
        rest = [fd for fd in untrusted_fds if fd not in at_once]
        if not rest:
            return
        log("app", "an agent sent descriptors that nobody asked for", "error", user=user, count=len(rest))
        with self.lock:
            self.closing[user] += 1
        threading.Thread(target=self._close, args=(user, rest), daemon=True).start()

    def _close(self, user: str | None, untrusted_fds: Sequence[int]) -> None:
        try:
            close_all(untrusted_fds)
        finally:
            with self.lock:
                self.closing[user] -= 1

    @contextmanager
    def _place(self, user: str | None) -> Iterator[None]:
        """One of the calls that this process, and this user, may have under way."""
        with self.lock:
            self._forget_taken()
            untaken = self.untaken.get(user, ())
            if (
                max(self.calling[user], len(untaken)) >= CALLS_PER_USER_MAX
                or self.closing[user] >= CLOSING_PER_USER
            ):
                raise errors.TooManyRequests(
                    "too many of your calls are under way; wait for one to end", retry_after_s=RETRY_AFTER_S
                )
            self.calling[user] += 1
        try:
            if not self.slots.acquire(timeout=SLOT_WAIT_S):
                raise unavailable("too many calls at once")
            try:
                yield
            finally:
                self.slots.release()
        finally:
            with self.lock:
                self.calling[user] -= 1

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
        give_fd: int | None = None,
        hangup_fd: int | None = None,
        timeout_s: int | None = None,
        on_progress: Callable[[dict[str, Any]], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Frame:
        give = None if give_fd is None else partial(_hand_over_file, give_fd)
        with self._conversation(verb, user, args, rid, peer, give, timeout_s) as conversation:
            return conversation.wait_for_reply(hangup_fd, on_progress, cancelled)

    @contextmanager
    def _conversation(
        self,
        verb: str,
        user: str | None,
        args: dict[str, Any],
        rid: str,
        peer: socket.socket | None,
        give: Callable[[socket.socket], None] | None = None,
        timeout_s: int | None = None,
    ) -> Iterator[Conversation]:
        """A call that has been sent, after what goes to its agent alone; leaving it closes its reply path."""
        allowed_s = min(timeout_s or VERBS[verb].max_timeout_s, VERBS[verb].max_timeout_s)
        message = {
            "verb": verb,
            "user": None if verb in NO_USER else user,
            "rid": rid,
            "timeout_s": allowed_s,
            "args": args,
        }
        shows_peer = peer is not None and self.pair == "unix" and verb != "helper.ping"
        with self._place(user):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            drop = partial(self.discard, user)
            with drained(ours, drop), theirs:
                if give is not None:
                    give(ours)
                with theirs:
                    fds = [theirs.fileno(), *([peer.fileno()] if peer is not None and shows_peer else [])]
                    self._send(message, fds)
                try:
                    yield Conversation(ours, verb, allowed_s + CHECK_S + LAST_WORD_S, drop)
                finally:
                    if give is not None:
                        self._note_untaken(user, ours)

    def _note_untaken(self, user: str | None, reply: socket.socket) -> None:
        """Keep in mind a reply path that has ended with words in it that its agent has not taken.

        The descriptor among them is in flight, on the account of the user svc, until the
        agent takes it or ends; with RLIMIT_NOFILE of those nobody's calls could be sent.
        """
        if _has_untaken(reply):
            with self.lock:
                self.untaken.setdefault(user, []).append(reply.dup())

    def _forget_taken(self) -> None:
        """Close those that are taken by now, or whose agent has ended; whoever's they are."""
        for user, replies in list(self.untaken.items()):
            left = [reply for reply in replies if _has_untaken(reply)]
            for reply in replies:
                if reply not in left:
                    reply.close()
            if left:
                self.untaken[user] = left
            else:
                del self.untaken[user]

    def _send(self, message: dict[str, Any], fds: list[int]) -> None:
        try:
            send(self.sock, message, fds, wait=False)
        except ProtocolError:
            raise errors.TooLarge("the request is too large for one call, or no text") from None
        except BlockingIOError:
            raise unavailable("the helper has too many calls waiting") from None
        except OSError as error:
            raise unavailable(f"the helper cannot be reached: {error.strerror}") from None


def _hand_over_file(fd: int, reply: socket.socket) -> None:
    """Put a file on its way to the agent: opened anew, for reading only, with a place of its own in it."""
    try:
        copy = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise unavailable(f"the file could not be handed over: {error.strerror}") from None
    try:
        _hand_over("input", copy, reply)
    finally:
        os.close(copy)


def _hand_over(word: str, fd: int, reply: socket.socket) -> None:
    """Put a descriptor on its way to the agent, past the root helper; `word` says what it is for."""
    try:
        send(reply, {word: True}, [fd], wait=False)
    except OSError as error:
        raise unavailable(f"the file could not be handed over: {error.strerror}") from None


def _has_untaken(reply: socket.socket) -> bool:
    """Whether the far end of a reply path is there, and has not taken everything."""
    return fcntl.ioctl(reply, termios.TIOCOUTQ, bytes(4)) != bytes(4)


def closes_at_once(untrusted_fd: int) -> bool:
    """Whether it is a memfd (only these carry seals) or a pidfd, which belong to the kernel alone."""
    try:
        fcntl.fcntl(untrusted_fd, fcntl.F_GET_SEALS)
    except OSError:
        return is_pidfd(untrusted_fd)
    return True


def is_pidfd(untrusted_fd: int) -> bool:
    """Whether the descriptor is a pidfd, which can do nothing to its poller but say that a process ended."""
    try:
        with open(f"/proc/self/fdinfo/{untrusted_fd}", encoding="ascii") as file:
            return any(line.startswith("Pid:") for line in file)
    except OSError:
        return False


DESCRIPTORS: dict[str, Callable[[int], bool]] = {"ctr.watch": is_pidfd}
