"""Podman's API as the verbs use it.

Podman's error messages go to the log and, shortened, to the caller, who owns this Podman;
code and message are ours.
"""

from __future__ import annotations

import json
import select
import socket
from collections.abc import Iterator
from contextlib import contextmanager

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.home import Home
from svc_helper.agent.podman import causes
from svc_helper.agent.podman.http import Wire, not_understood, whole
from svc_helper.agent.podman.service import Service, ServiceFailed
from svc_helper.agent.process import Process
from svc_helper.agent.scope import Scope
from svc_helper.wire.quick_typing import Any, NamedTuple

LIBPOD = "/v4.0.0/libpod"
COMPAT = "/v1.40"
_BODY_MAX = 4 * 1024 * 1024
_LOGGED_MAX = 2000
_TRIES = 3
# So says Podman before 4.4 of a process that ends while it reads the file, see its pull request 16504.
_ENDED_MEANWHILE = "/cgroup: no such process"
_ASK = "an administrator sees the remedy with: sudo svc admin doctor"


class Reply(NamedTuple):
    """A complete response: its status and its JSON (None for an empty body)."""

    status: int
    value: Any


class Podman:
    """The user's Podman; one connection per request."""

    def __init__(self, home: Home, service: Service, scope: Scope) -> None:
        self.home = home
        self.service = service
        self.scope = scope
        self.store: tuple[Process, str, str] | None = None  # of images, by the process that replied

    def connect(self) -> tuple[socket.socket, Process]:
        """A connection to the API, and the process expected to serve it."""
        if fault := self.home.store_fault():
            raise Failure("failed", f"the directory of your images cannot be used: {fault}; {_ASK}")
        self.service.start()  # not started yet by an agent whose first call was an exec
        process = self.service.process
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)  # a full connection queue is a failure, not a wait
            sock.connect(self.service.path)
        except OSError:
            sock.close()
            raise Failure("unavailable", "Podman does not accept more connections") from None
        return sock, process

    def revived(self, call: Call, seen: Process) -> Process:
        """Restart Podman after `seen` has ended; the new process, or Failure."""
        with _explained(call):
            self.service.revive(seen)
        return self.service.process

    def open(self, call: Call, method: str, path: str, body: bytes = b"") -> Wire:
        """Send a request; a Podman that ends before the response is restarted.

        If it had accepted the connection, the socket is closed; if not, the next
        Podman accepts it. It is not sent again.
        """
        sock, process = self.connect()
        listener = sock.getpeername()

        def wait(mask: int) -> None:
            nonlocal process
            while sock.fileno() not in (
                ready := call.wait({sock.fileno(): mask, process.pidfd: select.POLLIN})
            ):
                if process.pidfd in ready:
                    process = self.revived(call, process)
            with _explained(call):
                self.service.require_listener(listener)

        wire = Wire(sock, wait)
        try:
            wire.send(method, path, body)
        except Failure:
            sock.close()
            raise
        return wire

    def request(self, call: Call, method: str, path: str, body: Any = None) -> Reply:
        """One request and its complete response."""
        with self.open(call, method, path, b"" if body is None else json.dumps(body).encode()) as wire:
            status, parts = wire.answer()
            self.service.answered()
            content = whole(parts, _BODY_MAX)
        if not content:
            return Reply(status, None)
        try:
            return Reply(status, json.loads(content))
        except (ValueError, RecursionError):
            raise not_understood() from None

    def ask(self, call: Call, method: str, path: str) -> Any:
        """The JSON of a successful request, None for a 404; raises Failure for everything else.

        For requests that may be repeated: it is, when a container's process has ended under Podman's eyes.
        """
        for _ in range(_TRIES):
            reply = self.request(call, method, f"{LIBPOD}{path}")
            if reply.status < 500 or _ENDED_MEANWHILE not in str(reply.value):
                break
        if reply.status < 400:
            return reply.value
        if reply.status == 404:
            return None
        raise refusal(call, reply.value)

    def remove_container(self, call: Call, name: str) -> None:
        """Remove a container, running or not, with its anonymous volumes; also succeeds for a missing one."""
        # `volumes` is the word of this API. The Docker-compatible one has `v`, which is ignored here.
        self.ask(call, "DELETE", f"/containers/{name}?force=true&volumes=true&timeout=0")


@contextmanager
def _explained(call: Call) -> Iterator[None]:
    """The block's ServiceFailed becomes the Failure of its cause."""
    try:
        yield
    except ServiceFailed as failure:
        call.log("podman does not start", "error", why=failure.log)
        raise Failure(*causes.of_service(failure.log), failure.log) from None


def refusal(call: Call, untrusted_error: Any) -> Failure:
    """The Failure for an error of Podman's: {"message", "cause"}, or text."""
    if isinstance(untrusted_error, dict):
        untrusted_error = untrusted_error.get("message") or untrusted_error.get("cause")
    text = str(untrusted_error)
    call.log("podman refused", "warning", why=text[:_LOGGED_MAX])
    return Failure(*causes.of_container(text), text)
