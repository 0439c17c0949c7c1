"""One call's reply path: its messages, its deadline, and the error of its last message.

For svc.helper.helper and svc.helper.transfers. The agent that replies belongs to its user, who
may trace it: every message and every descriptor is hostile until it is checked.
"""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Callable, Sequence
from typing import Any

from svc import engine_errors, errors
from svc.log import log
from svc_helper.wire.protocol import VERBS, Frame, ProtocolError, receive_reply, send

CANCEL_S = 70.0  # for a cancelled call to clean up (a build: 30 s for Podman to exit, then its leftovers)
PROGRESS_MAX = 100  # messages read in a second; an agent that sends more waits
PROGRESS_PACE = 30  # pause after a message, as a multiple of the time that reading it took
MESSAGE_TEXT_MAX = 300
ENGINE_TEXT_MAX = 1000
RETRY_AFTER_S = 1

# Code of a reply -> error class, and its message where the reply's own is not for users.
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
    "too_many": (errors.TooManyTerminals, ""),
    "outdated": (errors.WorkspaceOutdated, ""),
    "not_listening": (errors.AppNotListening, ""),
    "image_missing": (errors.ImageMissing, ""),
    "registry": (errors.EngineFailed, ""),
    "storage_full": (errors.StorageFull, ""),
    "cancelled": (errors.Conflict, "the call was cancelled"),
    "timeout": (errors.EngineTimeout, ""),
    "unavailable": (errors.EngineUnavailable, ""),
    "build": (errors.BuildFailed, ""),
    "failed": (errors.EngineFailed, ""),
    **{code: (kind, "") for code, kind in engine_errors.CAUSES.items()},
}


class Conversation:
    """Receives the messages of one call, to the last."""

    def __init__(
        self, sock: socket.socket, verb: str, allowed_s: float, discard: Callable[[Sequence[int]], None]
    ) -> None:
        self.sock = sock
        self.discard = discard  # closes unexpected descriptors
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
        """Wait for the last message; an exception from here closes the reply path, which cancels the call."""
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
                untrusted = self.handle_progress(frame)
                if on_progress and untrusted is not None:
                    on_progress(untrusted)
            elif ready:
                raise errors.Conflict("the caller has gone")
            if cancelled and not self.cancelling and cancelled():
                self._cancel()

    def remaining_s(self) -> float:
        """Seconds until the deadline; raises EngineTimeout when it has passed."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise errors.EngineTimeout(f"{self.verb} took too long")
        return left

    def receive(self) -> Frame:
        """Wait for the next message; raises EngineFailed if it is malformed, EngineUnavailable at the end."""
        began = time.thread_time()
        try:
            try:
                frame = receive_reply(self.sock, discard=self.discard)
            except ConnectionResetError:
                # Closed with a message of ours unread: the error comes first, then the last message.
                frame = receive_reply(self.sock, discard=self.discard)
            self.cost_s = time.thread_time() - began
            return frame
        except ProtocolError as error:
            log("app", "an agent sent a malformed reply", "error", verb=self.verb, why=str(error))
            raise errors.EngineFailed(f"the reply to {self.verb} was malformed") from None
        except (EOFError, OSError):
            raise unavailable(f"{self.verb} failed: the process serving the call exited") from None

    def handle_progress(self, frame: Frame) -> dict[str, Any] | None:
        """The content of a progress message; None unless it is an object.

        Sleeps so that the rate and the processor time of an agent's messages stay bounded: Python
        parses for one thread at a time, and an agent can send what takes long.
        """
        if frame.fds:
            self.discard(frame.fds)
            raise errors.EngineFailed(f"the reply to {self.verb} was malformed")
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
            pass  # it has ended; the last message, or the end, is next


def data_of(frame: Frame, verb: str, pair: str) -> dict[str, Any]:
    """The data of a successful last message; raises the error of any other."""
    untrusted = frame.message
    if untrusted.get("ok") is True and type(untrusted.get("data")) is dict:
        data: dict[str, Any] = untrusted["data"]
        return data
    untrusted_code = untrusted.get("code")
    if untrusted.get("ok") is not False or type(untrusted_code) is not str or untrusted_code not in ERRORS:
        raise errors.EngineFailed("the reply was malformed")
    kind, ours = ERRORS[untrusted_code]
    if untrusted_code == "refused" and pair == "admin":  # root gets the helper's own message
        kind, ours = errors.HostRefused, ""
    elif untrusted_code == "refused" and verb == "account.check":
        kind, ours = errors.AccountIncomplete, "the Linux account is not the one that was set up for svc"
    elif untrusted_code == "refused" and VERBS[verb].caller == "admin":
        kind, ours = errors.AdminOnly, "only an administrator may do this"
    text = printable(untrusted.get("message"))
    if untrusted_code == "protocol":
        log("app", "the helper refused a call as malformed", "critical", why=text)
    retry_after_s = RETRY_AFTER_S if untrusted_code == "unavailable" else None
    engine = escaped(untrusted.get("engine"))
    raise kind(ours or text, details={"engine": engine} if engine else {}, retry_after_s=retry_after_s)


def printable(untrusted: Any) -> str:
    """An agent's message for its own user, bounded and without control characters."""
    text = untrusted if type(untrusted) is str else ""
    clean = "".join(character if character.isprintable() else " " for character in text[:MESSAGE_TEXT_MAX])
    return clean.strip() or "no reason was given"


def escaped(untrusted: Any, most: int = ENGINE_TEXT_MAX) -> str:
    """An engine's words for its owner: at most so many characters, those that are not printable escaped.

    The service does not log them. Empty where there are none.
    """
    text = untrusted if type(untrusted) is str else ""
    escapes = (char if char.isprintable() else ascii(char)[1:-1] for char in text[:most].rstrip())
    return "".join(escapes)[:most]


def unavailable(message: str) -> errors.EngineUnavailable:
    """The 503 for a call that could not be made or got no reply."""
    return errors.EngineUnavailable(message, retry_after_s=RETRY_AFTER_S)
