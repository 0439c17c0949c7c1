"""Programs of ours that outlive the agent: started, listened to, and ended when the caller says so.

A pull and a build run in processes of their own (puller.py, builder.py). Each
says one JSON line per report on its standard output and a last one, {"done"}
or {"code", "message", "words"}; this side passes the reports on.
"""

from __future__ import annotations

import os
import select
from collections.abc import Sequence
from contextlib import suppress

from svc_helper import interpreter
from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process
from svc_helper.wire.protocol import CODES, ProtocolError, decode

LINE_MAX = 64 * 1024


class Relay:
    """One run of such a program and what it says; `served_by` is the Podman that it talks to, if any."""

    def __init__(
        self,
        podman: Podman,
        module: str,
        words: Sequence[str],
        rid: str,
        given_fd: int,
        served_by: Process | None = None,
    ) -> None:
        self.podman = podman
        self.served_by = served_by
        # The call's own id goes last, where the program does not look: see predecessors().
        argv = interpreter.command(f"svc_helper.agent.images.{module}", *words, rid)
        self.argv = b"".join(os.fsencode(word) + b"\0" for word in argv)
        self.said, says = os.pipe2(os.O_CLOEXEC)
        actions = [(os.POSIX_SPAWN_DUP2, says, 1), (os.POSIX_SPAWN_DUP2, given_fd, 3)]
        try:
            # A session of its own and no death signal: it ends when its work does.
            pid = os.posix_spawn(argv[0], argv, podman.home.environment, file_actions=actions, setsid=True)
        finally:
            os.close(says)
        self.process = Process(pid)
        self.killed = False  # it had no time to clear up after itself

    def listen(self, call: Call, end_s: float) -> str:
        """Pass on what it says until it is done, and how it ended; Failure for what came to nothing.

        A call that is cancelled ends the program: TERM, then KILL after end_s seconds.
        """
        try:
            return self._listen(call, end_s)
        finally:
            os.close(self.said)
            if self.process.wait(end_s):
                self.process.ended()

    def _listen(self, call: Call, end_s: float) -> str:
        buffer = b""
        while True:
            try:
                ready = self._wait(call)
            except Failure:
                self._end(end_s)
                raise
            if self.said not in ready:
                continue
            part = os.read(self.said, LINE_MAX)
            if not part or len(buffer) > LINE_MAX:
                raise Failure("unavailable", "it ended without a result")
            *lines, buffer = (buffer + part).split(b"\n")
            for line in lines:
                if done := _heard(call, line):
                    return done

    def _wait(self, call: Call) -> set[int]:
        events = {self.said: select.POLLIN}
        if self.served_by is None:
            return call.wait(events)
        ready = call.wait({**events, self.served_by.pidfd: select.POLLIN})
        if self.served_by.pidfd in ready:  # at its idle end; a connection it had not taken waits for the next
            self.served_by = self.podman.revived(call, self.served_by)
        return ready

    def predecessors(self) -> list[int]:
        """What was begun for this very call before a restart, after which it came again to wait for that."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read(len(self.argv) + 1) == self.argv and int(name) != self.process.pid:
                        found.append(int(name))
            except (OSError, ValueError):
                continue  # no process, or none any more
        return found

    def _end(self, end_s: float) -> None:
        for pid in self.predecessors():
            with suppress(OSError):
                os.kill(pid, 15)
        for signal in (15, 9):
            if self.process.ended() is not None:
                return
            os.kill(self.process.pid, signal)
            self.killed = signal == 9
            if self.process.wait(end_s):
                self.process.ended()
                return


def _heard(call: Call, untrusted_line: bytes) -> str:
    """One line of the program; not empty when it is the last. Raises Failure for work that failed."""
    try:
        message = decode(untrusted_line)
    except ProtocolError:
        raise Failure("unavailable", "it ended without a result") from None
    if isinstance(message.get("progress"), dict):
        call.progress(message["progress"])
    if message.get("words"):
        call.log("it failed", "warning", words=message["words"])
    if message.get("code") in CODES:
        raise Failure(str(message["code"]), str(message.get("message"))[:300])
    return str(message.get("done") or "")
