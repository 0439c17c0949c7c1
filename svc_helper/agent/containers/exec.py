"""One command in a running workspace: started, read, and killed with all its descendants.

By crun, as the agent's own child; by `podman exec` only where crun is not the
container's runtime or its namespaces cannot be entered.
"""

from __future__ import annotations

import binascii
import errno
import os
import select
import time
from collections.abc import Mapping

from svc_helper.agent.calls import Call, Failure
from svc_helper.agent.containers.running import find_by_crun
from svc_helper.agent.containers.spec import container_name
from svc_helper.agent.home import Home
from svc_helper.agent.output import Output
from svc_helper.agent.podman.podman import Podman, refusal
from svc_helper.agent.process import Process, start
from svc_helper.agent.runtime import cgroups, crun, sealed_crun
from svc_helper.agent.runtime.crun import Running
from svc_helper.agent.runtime.process_tracker import ProcessTracker
from svc_helper.agent.runtime.runtime_errors import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    cannot_run,
    refused_by_kernel,
)
from svc_helper.wire.limits import EXEC_ARG_MAX, EXEC_COMMAND_BYTES_MAX, EXEC_OUTPUT_MAX
from svc_helper.wire.quick_typing import Any, Protocol

TIMED_OUT = 124  # as timeout(1)
_ENGINE_FAILED = 125
_ERROR_MAX = 4096


class Streams(Protocol):
    """The standard streams of a command: Output, or piping's."""

    stdin: int | None  # the command's own; None for an empty one
    writing: list[int]  # the command's own: stdout, stderr

    def begin_pipe(self) -> int | None:
        """A descriptor for crun to write the command's pid into, if that is of interest."""

    def close_writing(self) -> None:
        """Close the command's own ends, once it has them itself."""

    def events(self) -> dict[int, int]:
        """The poll masks of the descriptors to wait for."""

    def act(self, ready: set[int]) -> None:
        """Move what can be moved."""

    def finish(self) -> None:
        """Move what an ended command left."""

    def first_errors(self, most: int) -> str:
        """The beginning of the standard error, if it is still here."""

    def replace_errors(self, text: str) -> None:
        """Have this in place of the standard error, or after it."""

    def release(self) -> None:
        """Pass on what was held back while it might have been crun's."""

    def close(self) -> None:
        """Close all of them."""


class Exec:
    """One running command; the context removes its empty cgroup."""

    def __init__(self, call: Call, tracker: ProcessTracker, until: float, output: Streams) -> None:
        self.call = call
        self.tracker = tracker
        self.until = until
        self.output = output
        self.timed_out = False

    def __enter__(self) -> Exec:
        return self

    def __exit__(self, *raised: object) -> None:
        self.tracker.close()

    def run(self, argv: list[str], environment: dict[str, str], fds: Mapping[int, int]) -> int:
        """Run argv with `fds`, by number there, beside its standard streams; its exit code.

        On a timeout, or when the call fails, all its processes are killed.
        """
        streams = dict(enumerate((self.output.stdin, *self.output.writing)))
        process = start(argv, environment, {**streams, **fds}, setsid=True)
        self.output.close_writing()
        try:
            self.timed_out = not self._read_until_end(process)
            if self.timed_out:
                self._kill(process)
            self.output.finish()
        except Failure:
            self._kill(process)
            raise
        return TIMED_OUT if self.timed_out else _exit_code(process)

    def _read_until_end(self, process: Process) -> bool:
        """Read its output until it ends; False on a timeout."""
        while True:
            left = self.until - time.monotonic()
            events = {process.pidfd: select.POLLIN} | self.output.events()
            ready = self.call.wait(events, left)
            self.output.act(ready - {process.pidfd})
            if process.pidfd in ready:
                return True
            if left <= 0:
                return False

    def _kill(self, process: Process) -> None:
        """Kill everything the command started, until none of it is left."""
        process.finish(0)  # first, since it could still start something
        if not self.tracker.kill():
            self.call.log("processes of an exec may still run", "error", mark=self.tracker.mark)


def _exit_code(process: Process) -> int:
    code = process.ended() or 0
    return code if code >= 0 else 128 - code


def execute(podman: Podman, call: Call, args: dict[str, Any]) -> dict[str, Any]:
    """Run the command and return its output; on a timeout, or when the caller goes, it is killed."""
    output = Output(EXEC_OUTPUT_MAX)
    result = run(podman, call, args, output)
    return result | {
        "stdout": _base64(output.stdout),
        "stderr": _base64(output.stderr),
        "truncated": output.truncated,
    }


def run(podman: Podman, call: Call, args: dict[str, Any], output: Streams) -> dict[str, Any]:
    """Run the command with these streams, which are closed then; its exit code, and how it went."""
    try:
        result = _run(podman, call, args, output)
        output.release()
        return result
    finally:
        output.close()


def _run(podman: Podman, call: Call, args: dict[str, Any], output: Streams) -> dict[str, Any]:
    began = time.monotonic()
    if args["command"] is None:
        args = args | {"command": _receive_command(call)}
    mark = f"{call.rid}-{os.urandom(4).hex()}"
    running = _running(podman, call, args["id"])
    process = crun.read_process(podman.home, running) if running else None
    parent = "" if running is None or process is None else running.cgroup or cgroups.own()
    tracker = ProcessTracker(podman.home, mark, parent, by_crun=bool(running and running.cgroup))
    with Exec(call, tracker, began + args["timeout_s"], output) as command:
        if running is None or process is None:
            code = _by_podman(podman, command, mark, args)
        else:
            described = crun.exec_process(running, process, args["command"], mark)
            code = _by_crun(podman, command, running, described, args)
    return {
        "exit_code": code,
        "timed_out": command.timed_out,
        "duration_ms": round((time.monotonic() - began) * 1000),
    }


def _receive_command(call: Call) -> list[str]:
    """The words of a command that is too long for a message, from the file that came with the call."""
    fd = call.take_fd()
    try:
        content = _content(fd)
    finally:
        os.close(fd)
    *arguments, rest = content.split(b"\0")
    if rest or not arguments or not arguments[0] or max(map(len, arguments)) > EXEC_ARG_MAX:
        raise Failure("protocol", "not the words of a command")
    try:
        return [argument.decode() for argument in arguments]
    except UnicodeDecodeError:
        raise Failure("protocol", "a word of the command is not UTF-8") from None


def _content(fd: int) -> bytes:
    """Of a regular file: a pipe, for which this could wait, is refused by pread."""
    content = bytearray()
    while part := os.pread(fd, EXEC_COMMAND_BYTES_MAX, len(content)):
        content += part
        if len(content) > EXEC_COMMAND_BYTES_MAX:
            raise Failure("protocol", "the command is too long")
    return bytes(content)


def _running(podman: Podman, call: Call, workspace_id: str) -> Running | None:
    """The container, if crun can run a command in it."""
    running = find_by_crun(podman, call, workspace_id)
    podman.scope.wait()
    if running and not crun.may_enter(podman.home, running):
        return None
    return running


def _by_crun(podman: Podman, command: Exec, running: Running, process: bytes, args: dict[str, Any]) -> int:
    described, errors = os.memfd_create("svc-process"), os.memfd_create("svc-crun-log")
    try:
        os.write(described, process)
        program = sealed_crun.program()
        argv = crun.exec_argv(podman.home, running, command.tracker.group, program)
        fds = {3: described, 4: errors}
        if (begins := command.output.begin_pipe()) is not None:
            argv[-1:-1] = ["--pid-file=/proc/self/fd/5"]
            fds[5] = begins
        argv = command.tracker.start_argv(argv)
        code = command.run(argv, crun.environment(podman.home), fds | program.fds)
        error = os.pread(errors, _ERROR_MAX, 0).decode(errors="replace")
    finally:
        os.close(described)
        os.close(errors)
    if not error and code == 1 and refused_by_kernel(own := command.output.first_errors(_ERROR_MAX)):
        error = own
    if not error or command.timed_out:
        return code
    if crun.start_time(running.pid) is None:
        raise Failure("not_running", "the workspace has stopped")
    return _refused(command, args["command"][0], error, podman.home, running)


def _by_podman(podman: Podman, command: Exec, mark: str, args: dict[str, Any]) -> int:
    options = [f"--env=SVC_EXEC_ID={mark}", *(["-i"] if command.output.stdin is not None else [])]
    argv = ["/usr/bin/env", "podman", "exec", *options, container_name(args["id"])]
    try:
        code = command.run([*argv, *args["command"]], podman.home.environment, {})
    except OSError as failed:
        if failed.errno != errno.E2BIG:
            raise
        return _refused(command, args["command"][0], f"exec container process: {failed.strerror}")
    error = command.output.first_errors(_ERROR_MAX)
    by_engine = code in (_ENGINE_FAILED, NOT_EXECUTABLE, NOT_FOUND) and error.startswith("Error: ")
    if command.timed_out or not (by_engine or (code == 1 and refused_by_kernel(error))):
        return code
    return _refused(command, args["command"][0], error)


def _refused(
    command: Exec,
    program: str,
    untrusted_error: str,
    home: Home | None = None,
    running: Running | None = None,
) -> int:
    """The exit code of a command that cannot be run, as a shell and Podman have it; else Failure."""
    reason = cannot_run(program, untrusted_error, home, running)
    if reason is None:
        raise refusal(command.call, untrusted_error)
    command.call.log("command not run", why=untrusted_error)
    command.output.replace_errors(reason[1])  # in place of the engine's message
    return reason[0]


def _base64(content: bytearray) -> str:
    return binascii.b2a_base64(content, newline=False).decode()
