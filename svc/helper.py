"""The app's end of the helper's wire: one call, one fresh reply path, one deadline.

For the domain and the worker, which call `Helper.call` and get data or one of
svc.errors. The agent at the far end belongs to its user, who may trace it: every
answer and every descriptor is hostile until checked here or where it is used.
"""

from __future__ import annotations

import fcntl
import os
import select
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from svc import errors
from svc.limits import CALLS_OUTSTANDING_MAX, CALLS_PER_USER_MAX
from svc.log import log
from svc_helper.protocol import (
    NO_USER,
    VERBS,
    Frame,
    ProtocolError,
    close_all,
    receive_answer,
    send,
)

SLOT_WAIT_S = 2.0  # for one of the outstanding calls to end, before 503
LAST_WORD_S = 2.0  # for an agent that says itself that the time is over
CHECK_S = 10.0  # what the helper's account check may take before the call's own time runs
CANCEL_S = 70.0  # for a cancelled call to clean up (pull; build: 30 s for Podman to end, then what it left)
PROGRESS_MAX = 100  # messages read in a second; an agent that sends more waits
PROGRESS_PACE = 30  # times as long as reading a message took nothing more is read
CLOSING_PER_USER = 4
TRANSFERS_PER_USER = 4  # calls that hand back a descriptor, at once
MESSAGE_TEXT_MAX = 300
RETRY_AFTER_S = 1

# Code of an answer -> error class and what to say when the answer's own words are not for users.
ERRORS: dict[str, tuple[type[errors.SvcError], str]] = {
    "protocol": (errors.SvcError, "the service made a call that its helper does not know"),
    "refused": (errors.NotFound, "there is no such thing, or it is not yours"),
    "account": (errors.AccountDisabled, "the Linux account is expired, locked out or disabled"),
    "not_found": (errors.NotFound, ""),
    "conflict": (errors.Conflict, ""),
    "exists": (errors.AlreadyThere, ""),
    "forbidden": (errors.FileForbidden, ""),
    "too_large": (errors.TooLarge, ""),
    "not_running": (errors.WorkspaceNotRunning, ""),
    "image_missing": (errors.ImageMissing, ""),
    "registry": (errors.EngineFailed, ""),
    "storage_full": (errors.StorageFull, ""),
    "cancelled": (errors.Conflict, "the call was cancelled"),
    "timeout": (errors.EngineTimeout, ""),
    "unavailable": (errors.EngineUnavailable, ""),
    "build": (errors.BuildFailed, ""),
    "failed": (errors.EngineFailed, ""),
}


class Helper:
    """The client of one pair; shared by all threads of its process."""

    def __init__(self, sock: socket.socket, door: str) -> None:
        self.sock = sock
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)  # says who sends, even before a helper runs
        self.door = door
        self.slots = threading.BoundedSemaphore(CALLS_OUTSTANDING_MAX)
        self.lock = threading.Lock()
        self.transfers: Counter[str] = Counter()
        self.calling: Counter[str | None] = Counter()
        self.closing: Counter[str | None] = Counter()  # threads that wait for the close of what an agent sent

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
        return data_of(frame, verb, self.door)

    def call_fd(
        self, verb: str, user: str, args: dict[str, Any], **options: Any
    ) -> tuple[dict[str, Any], int]:
        """As call(), for a verb that hands back a descriptor, now the caller's to close."""
        with self._transfer(user):
            frame = self._ask(verb, user, args, **options)
        kind = DESCRIPTORS.get(verb)
        try:
            data = data_of(frame, verb, self.door)
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
        data_of(frame, verb, self.door)

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
            if self.calling[user] >= CALLS_PER_USER_MAX or self.closing[user] >= CLOSING_PER_USER:
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
        with self._conversation(verb, user, args, rid, peer, give_fd, timeout_s) as conversation:
            return conversation.listen(hangup_fd, on_progress, cancelled)

    @contextmanager
    def _conversation(
        self,
        verb: str,
        user: str | None,
        args: dict[str, Any],
        rid: str,
        peer: socket.socket | None,
        give_fd: int | None = None,
        timeout_s: int | None = None,
    ) -> Iterator[Conversation]:
        """A call that has been sent; leaving it closes its reply path."""
        allowed_s = min(timeout_s or VERBS[verb].max_timeout_s, VERBS[verb].max_timeout_s)
        message = {
            "verb": verb,
            "user": None if verb in NO_USER else user,
            "rid": rid,
            "timeout_s": allowed_s,
            "args": args,
        }
        shows_peer = peer is not None and self.door == "unix" and verb != "helper.ping"
        with self._place(user):
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with ours:
                if give_fd is not None:
                    give(ours, give_fd)
                with theirs:
                    fds = [theirs.fileno(), *([peer.fileno()] if peer is not None and shows_peer else [])]
                    self._send(message, fds)
                drop = partial(self.discard, user)
                yield Conversation(ours, verb, allowed_s + CHECK_S + LAST_WORD_S, drop)

    def _send(self, message: dict[str, Any], fds: list[int]) -> None:
        try:
            send(self.sock, message, fds, wait=False)
        except ProtocolError:
            raise errors.TooLarge("the request is too large for one call, or no text") from None
        except BlockingIOError:
            raise unavailable("the helper has too many calls waiting") from None
        except OSError as error:
            raise unavailable(f"the helper cannot be reached: {error.strerror}") from None


class Conversation:
    """Listening on one call's reply path until its last message."""

    def __init__(
        self, sock: socket.socket, verb: str, allowed_s: float, discard: Callable[[Sequence[int]], None]
    ) -> None:
        self.sock = sock
        self.discard = discard  # of descriptors that nobody wants
        self.verb = verb
        self.deadline = time.monotonic() + allowed_s
        self.second, self.progress_count, self.cost_s = 0, 0, 0.0
        self.cancelling = False

    def listen(
        self,
        hangup_fd: int | None,
        on_progress: Callable[[dict[str, Any]], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> Frame:
        """The last message; leaving this early closes the reply path, which cancels the call."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        if hangup_fd is not None:
            poll.register(hangup_fd, select.POLLRDHUP)
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise errors.EngineTimeout(f"{self.verb} took too long")
            ready = dict(poll.poll(min(left, 1.0 if cancelled else left) * 1000 + 1))
            if self.sock.fileno() in ready:
                frame = self._take()
                if set(frame.message) != {"progress"}:
                    return frame
                self._pass_on(frame, on_progress)
            elif ready:
                raise errors.Conflict("the caller has gone")
            if cancelled and not self.cancelling and cancelled():
                self._cancel()

    def follow(
        self, hangup_fds: Sequence[int], tick_s: float
    ) -> Generator[dict[str, Any] | None, None, Frame]:
        """Yield what comes, None after each tick_s without anything; returns the last message."""
        poll = select.poll()
        poll.register(self.sock, select.POLLIN)
        for hangup_fd in hangup_fds:
            poll.register(hangup_fd, select.POLLRDHUP)
        while True:
            left = self.deadline - time.monotonic()
            if left <= 0:
                raise errors.EngineTimeout(f"{self.verb} took too long")
            ready = dict(poll.poll(min(left, tick_s) * 1000 + 1))
            if set(ready) - {self.sock.fileno()}:  # first: who talks on must not hide that nobody listens
                raise errors.Conflict("the caller has gone")
            if not ready:
                yield None
                continue
            frame = self._take()
            if set(frame.message) != {"progress"}:
                return frame
            untrusted = self._progress(frame)
            if untrusted is not None:
                yield untrusted

    def _take(self) -> Frame:
        began = time.thread_time()
        try:
            try:
                frame = receive_answer(self.sock, discard=self.discard)
            except ConnectionResetError:
                # Closed with a message of ours unread (a file, a cancel): told first, the last message next.
                frame = receive_answer(self.sock, discard=self.discard)
            self.cost_s = time.thread_time() - began
            return frame
        except ProtocolError as error:
            log("app", "an answer that no agent sends", "error", verb=self.verb, why=str(error))
            raise errors.EngineFailed(f"{self.verb} was not answered properly") from None
        except (EOFError, OSError):
            raise unavailable(f"{self.verb} was not answered: who held the call has ended") from None

    def _pass_on(self, frame: Frame, on_progress: Callable[[dict[str, Any]], None] | None) -> None:
        untrusted = self._progress(frame)
        if on_progress and untrusted is not None:
            on_progress(untrusted)

    def _progress(self, frame: Frame) -> dict[str, Any] | None:
        """What a message says on the way; None where that is no object.

        Not too many in a second, and reading them takes a small part of a processor: Python
        reads for one thread at a time, and an agent can send what takes long.
        """
        if frame.fds:
            self.discard(frame.fds)
            raise errors.EngineFailed(f"{self.verb} was not answered properly")
        time.sleep(min(1.0, PROGRESS_PACE * self.cost_s))
        now = time.monotonic()
        if int(now) != self.second:
            self.second, self.progress_count = int(now), 0
        self.progress_count += 1
        if self.progress_count > PROGRESS_MAX:
            time.sleep(int(now) + 1 - now)
        untrusted = frame.message["progress"]
        return untrusted if type(untrusted) is dict else None

    def _cancel(self) -> None:
        self.cancelling = True
        self.deadline = min(self.deadline, time.monotonic() + CANCEL_S)
        try:
            send(self.sock, {"cancel": True}, wait=False)
        except OSError:
            pass  # it has ended already; its last message, or the end, is on its way


def give(reply: socket.socket, fd: int) -> None:
    """Put a file on its way to the agent: opened anew, for reading only, with a place of its own in it."""
    try:
        copy = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        try:
            send(reply, {"input": True}, [copy], wait=False)
        finally:
            os.close(copy)
    except OSError as error:
        raise unavailable(f"the file could not be handed over: {error.strerror}") from None


def data_of(frame: Frame, verb: str, door: str) -> dict[str, Any]:
    """The data of a last message that says ok; raises the error that another one means."""
    untrusted = frame.message
    if untrusted.get("ok") is True and type(untrusted.get("data")) is dict:
        data: dict[str, Any] = untrusted["data"]
        return data
    untrusted_code = untrusted.get("code")
    if untrusted.get("ok") is not False or type(untrusted_code) is not str or untrusted_code not in ERRORS:
        raise errors.EngineFailed("the answer was not one of the protocol's")
    kind, ours = ERRORS[untrusted_code]
    if untrusted_code == "refused" and door == "admin":  # root reads the helper's own words
        kind, ours = errors.HostRefused, ""
    elif untrusted_code == "refused" and verb == "account.check":
        kind, ours = errors.AccountIncomplete, "the Linux account is not the one that was set up for svc"
    elif untrusted_code == "refused" and VERBS[verb].who == "admin":
        kind, ours = errors.AdminOnly, "only an administrator may do this"
    text = printable(untrusted.get("message"))
    if untrusted_code == "protocol":
        log("app", "the helper refused a call as malformed", "critical", why=text)
    retry_after_s = RETRY_AFTER_S if untrusted_code == "unavailable" else None
    raise kind(ours or text, retry_after_s=retry_after_s)


def printable(untrusted: Any) -> str:
    """An agent's words, bounded and without control characters, for the agent's own user to read."""
    text = untrusted if type(untrusted) is str else ""
    clean = "".join(character if character.isprintable() else " " for character in text[:MESSAGE_TEXT_MAX])
    return clean.strip() or "no reason was given"


def unavailable(message: str) -> errors.EngineUnavailable:
    """The 503 of a call that was not made or not answered."""
    return errors.EngineUnavailable(message, retry_after_s=RETRY_AFTER_S)


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
