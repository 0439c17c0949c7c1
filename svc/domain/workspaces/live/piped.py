"""Exec with a standard input: binary-safe, both outputs apart and as they come, of any length.

As calls.run() in what it requires, refuses and writes to the audit. The command ends,
with all its descendants, when the block is left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from svc.actions.table import WORKSPACE_EXEC
from svc.domain import untrusted
from svc.domain.audit import audit
from svc.domain.places import long_calls
from svc.domain.principal import Caller
from svc.domain.workspaces import calls, idle, states
from svc.errors import EngineFailed
from svc.helper.transfers import LAST_MESSAGE_S, Transfer
from svc.limits import EXEC_TIMEOUT_DEFAULT_S
from svc_helper.wire import terminal_frames as frames

KINDS = {frames.OUTPUT: "stdout", frames.ERRORS: "stderr"}
Message = tuple[str, Any]


class Piped:
    """A running command. Messages are ("stdout", bytes), ("stderr", bytes), and ("end", result) last.

    The result is {exit_code, timed_out, duration_ms}.
    """

    def __init__(self, transfer: Transfer, detail: dict[str, Any]) -> None:
        self._transfer, self._detail = transfer, detail
        self._ended = False

    def fileno(self) -> int:
        """The descriptor to poll: for reading, and for writing when send() had no room."""
        return self._transfer.stream.fileno()

    def wait(self, events: Mapping[int, int], timeout_s: float) -> set[int]:
        """Wait for one of these descriptors (Transfer.wait): raises the command's error, or Conflict."""
        return self._transfer.wait(events, timeout_s)

    def receive(self) -> Message | None:
        """The next message; None when there is none yet, and after the end. Raises EngineFailed."""
        if self._ended:
            return None
        frame = self._transfer.stream.receive(frames.FRAME_MAX + 1)
        if frame is None:
            return None
        if not frame:
            self._ended = True
            result = _checked(self._transfer.end(LAST_MESSAGE_S))
            self._detail["exit_code"] = result["exit_code"]
            return "end", result
        kind = KINDS.get(frame[:1])
        if kind is None or len(frame) > frames.FRAME_MAX:
            raise EngineFailed("the engine sent what is no output")
        return kind, frame[1:]

    def send(self, data: bytes) -> int:
        """Pass these bytes to the command; how many were taken. What follows its end is dropped."""
        taken = 0
        while taken < len(data):
            part = data[taken : taken + frames.DATA_MAX]
            if not self._send(frames.INPUT + part):
                break
            taken += len(part)
        return taken

    def finish_input(self) -> bool:
        """End the command's standard input; False when there is no room now."""
        return self._send(frames.INPUT_END)

    def _send(self, frame: bytes) -> bool:
        try:
            return self._transfer.stream.send(memoryview(frame)) > 0
        except OSError:  # it has ended; receive() has its result
            return True


@contextmanager
def started(
    caller: Caller,
    ref: str,
    command: list[str],
    timeout_s: int = EXEC_TIMEOUT_DEFAULT_S,
    *,
    hangup_fds: Sequence[int] = (),
) -> Iterator[Piped]:
    """Run one command for the length of the block: "owner-only, including for administrators".

    Raises OwnerOnly, WorkspaceNotRunning, TooManyRequests, and Conflict when the
    caller's connection or one of hangup_fds hangs up.
    """
    workspace = states.find_own(caller, ref, WORKSPACE_EXEC)
    calls.require_running(caller, workspace)
    idle.touch(workspace.id)
    program = command[0][: calls.PROGRAM_MAX]
    arguments: dict[str, Any] = {"id": workspace.id, "command": command, "timeout_s": timeout_s}
    with (
        calls.beside_the_message(arguments) as input_fd,
        long_calls.counted(caller),
        audit.audited(caller, WORKSPACE_EXEC, workspace.id, program=program, stdin=True) as detail,
        calls.expect_running(caller, workspace),
        caller.transfer(
            "ctr.pipe", arguments, hangup_fds=caller.watched(hangup_fds), input_fd=input_fd, messages=True
        ) as transfer,
    ):
        yield Piped(transfer, detail)
        idle.touch(workspace.id)  # it may have taken a while


def _checked(reply: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "exit_code": untrusted.find_number(reply, "exit_code"),
        "timed_out": untrusted.get_flag(reply, "timed_out"),
        "duration_ms": untrusted.get_number(reply, "duration_ms"),
    }
