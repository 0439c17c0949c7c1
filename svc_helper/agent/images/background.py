"""Programs that outlive the agent (puller.py, builder.py): start, relay reports, cancel.

A program writes one JSON line per report to its standard output: {"progress"} any
number of times, then {"done"} or {"code", "message", "reason"}.
"""

from __future__ import annotations

import json
import os
import select
from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from svc_helper import interpreter
from svc_helper.agent.calls import Call, Failure, shortened
from svc_helper.agent.podman.podman import Podman
from svc_helper.agent.process import Process, start
from svc_helper.wire.protocol import ProtocolError, decode
from svc_helper.wire.quick_typing import Any

LINE_MAX = 64 * 1024


def report(message: dict[str, Any]) -> None:
    """Called in the program: write one line. The agent that started it may have exited."""
    data = json.dumps(message, ensure_ascii=False).encode() + b"\n"
    with suppress(OSError):
        while data:
            data = data[os.write(1, data) :]


def report_failure(failure: Failure) -> None:
    """Called in the program: write its last line."""
    report({"code": failure.code, "message": failure.message, "reason": shortened(failure.engine)})


class Relay:
    """One run of such a program; `served_by` is the Podman that it is connected to, if any."""

    def __init__(
        self,
        podman: Podman,
        module: str,
        arguments: Sequence[str],
        rid: str,
        input_fd: int,
        served_by: Process | None = None,
    ) -> None:
        self.podman = podman
        self.served_by = served_by
        # The request id is the last argument, which the program ignores: see predecessors().
        argv = interpreter.command(f"svc_helper.agent.images.{module}", *arguments, rid)
        self.argv = b"".join(os.fsencode(argument) + b"\0" for argument in argv)
        self.output, write_end = os.pipe2(os.O_CLOEXEC)
        try:
            # A session of its own and no death signal: it ends when its work does.
            fds = {1: write_end, 3: input_fd}
            self.process = start(argv, podman.home.environment, fds, setsid=True)
        finally:
            os.close(write_end)
        self.killed = False  # by SIGKILL, so without cleanup

    def run(self, call: Call, stop_timeout_s: float) -> str:
        """Relay reports until the program is done; returns its `done`, raises Failure for failed work.

        What it cleans up then goes on beside the call's reply. A cancelled call ends the program:
        SIGTERM, then SIGKILL after stop_timeout_s.
        """
        done = ""
        try:
            done = self._relay(call, stop_timeout_s)
        finally:
            os.close(self.output)
            if not done:
                self._reap(stop_timeout_s)
        call.afterwards.append(partial(self._reap, stop_timeout_s))
        return done

    def _reap(self, timeout_s: float) -> None:
        if self.process.wait(timeout_s):
            self.process.ended()

    def _relay(self, call: Call, stop_timeout_s: float) -> str:
        buffer = b""
        while True:
            try:
                ready = self._wait(call)
            except Failure:
                self._stop(stop_timeout_s)
                raise
            if self.output not in ready:
                continue
            part = os.read(self.output, LINE_MAX)
            if not part or len(buffer) > LINE_MAX:
                raise Failure("unavailable", "it ended without a result")
            *lines, buffer = (buffer + part).split(b"\n")
            for line in lines:
                if done := _handle(call, line):
                    return done

    def _wait(self, call: Call) -> set[int]:
        events = {self.output: select.POLLIN}
        if self.served_by is None:
            return call.wait(events)
        ready = call.wait({**events, self.served_by.pidfd: select.POLLIN})
        if self.served_by.pidfd in ready:  # Podman exited when idle; a pending connection waits for the next
            self.served_by = self.podman.revived(call, self.served_by)
        return ready

    def predecessors(self) -> list[int]:
        """Programs started for this same request before a restart of the service repeated it."""
        found = []
        for name in os.listdir("/proc"):
            try:
                with open(f"/proc/{name}/cmdline", "rb") as file:
                    if file.read(len(self.argv) + 1) == self.argv and int(name) != self.process.pid:
                        found.append(int(name))
            except (OSError, ValueError):
                continue  # not a process, or exited
        return found

    def _stop(self, timeout_s: float) -> None:
        for pid in self.predecessors():
            with suppress(OSError):
                os.kill(pid, 15)
        for signal in (15, 9):
            if self.process.ended() is not None:
                return
            os.kill(self.process.pid, signal)
            self.killed = signal == 9
            if self.process.wait(timeout_s):
                self.process.ended()
                return


def _handle(call: Call, untrusted_line: bytes) -> str:
    """Relay one line; returns `done` if it is the last. Raises Failure for failed work."""
    try:
        message = decode(untrusted_line)
    except ProtocolError:
        raise Failure("unavailable", "it ended without a result") from None
    if isinstance(message.get("progress"), dict):
        call.progress(message["progress"])
    if message.get("reason"):
        call.log("it failed", "warning", why=message["reason"])
    if message.get("code"):
        # A build's own last words are in its log.
        raise Failure.of_reply(
            message, "" if message["code"] == "build" else str(message.get("reason") or "")
        )
    return str(message.get("done") or "")
