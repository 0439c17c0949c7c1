"""One call's reply path from the app's end: its messages, its deadline, what its last word means.

For svc.helper.helper and svc.helper.transfers. The agent at the far end belongs to its user,
who may trace it: every message and every descriptor is hostile until checked
here or where it is used.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any

from svc import errors
from svc.log import log
from svc_helper.wire.protocol import VERBS, Frame, ProtocolError, receive_answer, send

CANCEL_S = 70.0  # for a cancelled call to clean up (pull; build: 30 s for Podman to end, then what it left)
PROGRESS_MAX = 100  # messages read in a second; an agent that sends more waits
PROGRESS_PACE = 30  # times as long as reading a message took nothing more is read
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

    def wait_for_reply(
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
            left = self.remaining_s()
            ready = dict(poll.poll(min(left, 1.0 if cancelled else left) * 1000 + 1))
            if self.sock.fileno() in ready:
                frame = self.receive()
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
            ready = dict(poll.poll(min(self.remaining_s(), tick_s) * 1000 + 1))
            if set(ready) - {self.sock.fileno()}:  # first: who talks on must not hide that nobody listens
                raise errors.Conflict("the caller has gone")
            if not ready:
                yield None
                continue
            frame = self.receive()
            if set(frame.message) != {"progress"}:
                return frame
            untrusted = self.handle_progress(frame)
            if untrusted is not None:
                yield untrusted

    def remaining_s(self) -> float:
        """Seconds until the deadline; raises EngineTimeout when it has passed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise errors.EngineTimeout(f"{self.verb} took too long")
        return left

    def receive(self) -> Frame:
        """The next message, waited for; raises EngineFailed for what no agent sends, EngineUnavailable."""
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
        untrusted = self.handle_progress(frame)
        if on_progress and untrusted is not None:
            on_progress(untrusted)

    def handle_progress(self, frame: Frame) -> dict[str, Any] | None:
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


def data_of(frame: Frame, verb: str, pair: str) -> dict[str, Any]:
    """The data of a last message that says ok; raises the error that another one means."""
    untrusted = frame.message
    if untrusted.get("ok") is True and type(untrusted.get("data")) is dict:
        data: dict[str, Any] = untrusted["data"]
        return data
    untrusted_code = untrusted.get("code")
    if untrusted.get("ok") is not False or type(untrusted_code) is not str or untrusted_code not in ERRORS:
        raise errors.EngineFailed("the answer was not one of the protocol's")
    kind, ours = ERRORS[untrusted_code]
    if untrusted_code == "refused" and pair == "admin":  # root reads the helper's own words
        kind, ours = errors.HostRefused, ""
    elif untrusted_code == "refused" and verb == "account.check":
        kind, ours = errors.AccountIncomplete, "the Linux account is not the one that was set up for svc"
    elif untrusted_code == "refused" and VERBS[verb].caller == "admin":
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
